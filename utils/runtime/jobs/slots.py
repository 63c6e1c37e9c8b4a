"""GPUs as files: who holds the lock on `slot.3` has the GPU number 3. The kernel frees it when the holder dies.

`flock` belongs to the opened file, not to the process: a child that inherits the file holds the lock too. So whoever
admits a job can take the locks for all its ranks and hand them over.
"""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ADMISSION = "admission"


def make_slots(folder: Path, count: int) -> None:
    """Files for `count` GPUs, and one for who may admit a job. Raises OSError where the system has no `flock`."""
    if fcntl is None:
        raise OSError("this system has no file locks of the kind that slots are made of (flock): use Linux or macOS.")
    for name in (*(f"slot.{number}" for number in range(count)), ADMISSION):
        (folder / name).touch()


def slot_files(folder: Path) -> list[Path]:
    """The slots, by number."""
    return sorted(folder.glob("slot.*"), key=lambda path: int(path.suffix[1:]))


def try_lock(path: Path) -> int | None:
    """The opened file with its lock, or None if somebody holds it. Closing the file gives the lock back."""
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def take_one(folder: Path) -> tuple[int, int] | None:
    """Any free slot: (its number, the opened file), or None if all are taken."""
    for path in slot_files(folder):
        file = try_lock(path)
        if file is not None:
            return int(path.suffix[1:]), file
    return None


def take_all(folder: Path, count: int) -> list[tuple[int, int]] | None:
    """`count` slots or none: what was taken is given back if it does not suffice.

    Meanwhile nobody else may take any: the lock on `ADMISSION` sees to it, for those that ask for it.
    """
    gate = os.open(folder / ADMISSION, os.O_RDWR)
    fcntl.flock(gate, fcntl.LOCK_EX)
    taken: list[tuple[int, int]] = []
    try:
        while len(taken) < count and (slot := take_one(folder)) is not None:
            taken.append(slot)
        if len(taken) == count:
            return taken
        for _, file in taken:
            os.close(file)
        return None
    finally:
        os.close(gate)


def is_taken(path: Path) -> bool:
    """Whether somebody else holds the lock: asked of the kernel."""
    file = try_lock(path)
    if file is None:
        return True
    os.close(file)
    return False
