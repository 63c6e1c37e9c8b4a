"""In a rank: sees when a file that an earlier step has left is emptied, removed or renamed, and can end the rank there.

Between that and the next whole file there may be no checkpoint at all. `torch.save` is not the only way to write one;
what Python opens, removes or renames, it announces to audit hooks (PEP 578), before it does so. A hook is for the rest
of a process, which is why only ranks have one: each is fresh.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Note = Callable[[str], None]


class Watch:
    """Of the folder `shared`: `note(path)` is called for each such file. `step()`: what is there by now is old.

    deadly: with which one the rank dies, right after the deed; 0 for none.
    path: of the file if the death leaves it there, empty; else "".
    """

    def __init__(self, shared: Path, note: Note, deadly: int) -> None:
        self._shared, self._note, self._deadly = str(shared.absolute()), note, deadly
        self._old: set[str] = set()
        self._busy, self._met = False, 0
        sys.addaudithook(self._hear)

    def step(self) -> None:
        self._busy = True
        self._old = {
            os.path.join(folder, name)
            for folder, _, names in os.walk(self._shared)
            for name in names
            if os.path.getsize(os.path.join(folder, name))
        }
        self._busy = False

    def saves(self, target: str) -> None:
        """`torch.save` writes to a path without a word to audit hooks."""
        self._meet(target, lambda path: os.truncate(path, 0))

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._busy or not self._old:
            return
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_TRUNC:
            self._meet(arguments[0], lambda path: os.truncate(path, 0))
        elif event == "os.remove":
            self._meet(arguments[0], os.remove)
        elif event == "os.rename":
            self._meet(arguments[0], lambda path: os.rename(path, arguments[1]))
        elif event == "shutil.rmtree":
            below = os.path.join(os.path.abspath(arguments[0]), "")
            for path in [each for each in self._old if each.startswith(below)]:
                self._meet(path, os.remove)

    def _meet(self, target: Any, deed: Callable[[str], None]) -> None:
        if isinstance(target, bytes | os.PathLike):
            target = os.fsdecode(target)
        if self._busy or not isinstance(target, str) or os.path.abspath(target) not in self._old:
            return
        path = os.path.abspath(target)
        self._busy = True
        self._met += 1
        if self._met != self._deadly:
            self._note("")
        else:
            deed(path)
            self._note(path if os.path.exists(path) else "")
            os.kill(os.getpid(), signal.SIGKILL)
        self._busy = False
