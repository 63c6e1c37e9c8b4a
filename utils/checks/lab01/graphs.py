"""Which passes' graphs still hold the tensors that they saved for the backward.

A backward frees what its graph has saved, unless it is told to retain the graph; then the memory stays as long as
anything of the graph is referred to.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd.graph import saved_tensors_hooks


class _Saved:
    """One tensor that a graph saved, in pass `number`. Detached: an output saved by its own node would never go."""

    def __init__(self, tensor: torch.Tensor, number: int) -> None:
        self.tensor, self.version, self.number = tensor.detach(), tensor._version, number


class GraphWatch:
    """`number` is that of the pass under way; what is saved from then on belongs to it."""

    def __init__(self) -> None:
        self.number = 0
        self._saved: weakref.WeakSet[_Saved] = weakref.WeakSet()

    def alive(self) -> set[int]:
        """The numbers of the passes whose graphs hold anything."""
        return {saved.number for saved in self._saved}

    @contextmanager
    def watching(self) -> Iterator[None]:
        with saved_tensors_hooks(self._pack, _unpack):
            yield

    def _pack(self, tensor: torch.Tensor) -> _Saved:
        saved = _Saved(tensor, self.number)
        self._saved.add(saved)
        return saved


def _unpack(saved: _Saved) -> torch.Tensor:
    """With the check that autograd itself makes where no hook is set."""
    if saved.tensor._version != saved.version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation"
        )
    return saved.tensor
