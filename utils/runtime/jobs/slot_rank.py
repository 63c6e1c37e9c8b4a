"""A rank that needs a GPU: a program of its own, started by `gang.py`, which imports nothing of the suite but slots.

It takes any free slot or was handed one, waits until all ranks of its job have theirs, works, and ends. What it does
stands in its file: "waits", "holds 2", "works 2", "done 2".
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
from slots import take_one  # noqa: E402

POLL = 0.005  # seconds


def say(folder: Path, job: str, rank: int, what: str) -> None:
    """Replaced in one move, so that a reader never sees half of it."""
    unfinished = folder / f"unfinished.{job}.{rank}"
    unfinished.write_text(what)
    os.replace(unfinished, folder / f"state.{job}.{rank}")


def main(folder: Path, job: str, rank: int, ranks: int, seconds: float, given: int | None) -> None:
    """given: the slot whose locked file this process has inherited."""
    number, parent = given, os.getppid()
    while number is None:
        taken = take_one(folder)
        if taken is None:
            say(folder, job, rank, "waits")
            pause(parent)
        else:
            number = taken[0]
    say(folder, job, rank, f"holds {number}")
    while not all(_has_slot(folder / f"state.{job}.{other}") for other in range(ranks)):
        pause(parent)  # as a rank in init_process_group waits for the others, its GPU idle
    say(folder, job, rank, f"works {number}")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pause(parent)
    say(folder, job, rank, f"done {number}")


def pause(parent: int) -> None:
    """A moment; the end if nobody is left who started this process."""
    if os.getppid() != parent:
        os._exit(1)
    time.sleep(POLL)


def _has_slot(state: Path) -> bool:
    try:
        return state.read_text() != "waits"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    place, name, rank, ranks, seconds, given = sys.argv[1:]
    main(Path(place), name, int(rank), int(ranks), float(seconds), int(given) if given != "-" else None)
