"""All that exists: the bytes of every tensor that a piece of code makes and that still lives, whatever its name.

    with Held(model) as held:
        train()
        held.bytes             # now
        held.at_rest()         # the same, when collectives have let go of what they carried
        held.peak              # the most since the last `held.forget_peak()`

A ledger walks names: parameters, gradients, an optimizer's state. Here every operation is watched instead, and the
storage of each result remembered weakly, so that a buffer without a name, or one whose name is gone while a view keeps
it, is counted too. A storage counts once, with the bytes that it has now. Not seen is the room that an operation needs
inside itself and gives back before it ends, and what the process group receives into.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from utils.runtime.storages import Storages, storage_bytes, storages_of
from utils.theory.arguments import check_amount
from utils.theory.units import shown


class Held(TorchDispatchMode):
    """Watches one thread while it is entered. things: tensors, modules, lists or dicts of them, there already.

    Raises TypeError for another thing, in which nothing would be found: for an optimizer give `optimizer.state`.
    """

    def __init__(self, *things: Any) -> None:
        for thing in things:
            if not isinstance(thing, torch.Tensor | nn.Module | Iterable) or isinstance(thing, str | bytes):
                raise TypeError(
                    f"Held is given {shown(thing)}; it counts what tensors, modules, and lists or dicts of these hold: "
                    "give those, such as `Held(model, optimizer.state)`."
                )
        super().__init__()
        self._storages = Storages()
        self._paused = False
        self.peak = 0
        for storage in storages_of(things):
            self._storages.note(storage, "")
        self.forget_peak()

    @property
    def bytes(self) -> int:
        """What lives now."""
        return sum(storage_bytes(storage) for storage, _ in self._storages.alive())

    def at_rest(self, seconds: float = 0.1) -> int:
        """The least that lives within so long: for a moment a process group may still hold what it has carried.

        Raises ValueError for what is no time.
        """
        check_amount("seconds", seconds, "how long to look", "such as 0.1", least=0)
        least, end = self.bytes, time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.005)
            least = min(least, self.bytes)
        return least

    def forget_peak(self) -> None:
        """From now on `peak` is the most since now."""
        self.peak = self.bytes

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, what is made counts if it lives on, but does not raise the peak."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        fresh = False
        for storage in storages_of(result):
            if self._storages.word(storage) is None:
                self._storages.note(storage, "")
                fresh = True
        # A storage that was emptied gets its size back without an operation; a collective into it follows.
        if (fresh or func.namespace == "c10d") and not self._paused:
            self.peak = max(self.peak, self.bytes)
        return result


@contextmanager
def unseen() -> Iterator[None]:
    """Inside, what is made is not remembered: the tensors of whoever measures."""
    with _disable_current_modes():
        yield
