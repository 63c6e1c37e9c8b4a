"""The storages behind tensors: what is counted when bytes are counted.

A tensor is a view of a storage; several can share one (tied weights, the parameters in a flat buffer, gradients in a
bucket of DDP), and a storage can be emptied and filled again while its tensors stay (FSDP). So bytes are counted in
storages, each once. A storage is remembered weakly: remembering it keeps no memory alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def storage_bytes(storage: torch.UntypedStorage) -> int:
    """Bytes that a storage holds now. Every byte that a ledger counts is counted here."""
    return storage.nbytes()


class Storages:
    """Storages by key (their address), each with a word about it. Those that are gone drop out by themselves."""

    def __init__(self) -> None:
        # While a weak reference exists, no other storage gets this one's address.
        self._noted: dict[int, tuple[StorageWeakRef, str]] = {}
        self._tidy_at = 1024

    def note(self, storage: torch.UntypedStorage, word: str) -> None:
        """Remember a storage; a later word takes the place of an earlier one."""
        key = storage._cdata
        known = self._noted.get(key)
        self._noted[key] = (known[0] if known else StorageWeakRef(storage), word)
        if len(self._noted) > self._tidy_at:
            self._tidy_at = 2 * len(self.alive()) + 1024

    def word(self, storage: torch.UntypedStorage) -> str | None:
        """What was noted about a storage, or None."""
        known = self._noted.get(storage._cdata)
        return known[1] if known else None

    def alive(self) -> list[tuple[torch.UntypedStorage, str]]:
        """(storage, word) for each that still exists."""
        alive = []
        for key, (reference, word) in list(self._noted.items()):
            storage = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
            if storage is None:
                self._noted.pop(key, None)
            else:
                alive.append((storage, word))
        return alive


#: What this process has handed to collectives, sends and receives; noted by `utils.runtime.tap`.
COMMUNICATED = Storages()


def note_communicated(arguments: Iterable[Any]) -> None:
    """Note the tensors, and the tensors in lists, among the arguments of a `c10d` op."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor | list):
            for storage in storages_of(argument):
                COMMUNICATED.note(storage, "communicated")


def storages_of(things: Any) -> Iterator[torch.UntypedStorage]:
    """The storages of `tensors_in(things)` on real devices; one that several tensors share comes several times."""
    for tensor in tensors_in(things):
        for plain in _plain_tensors(tensor):
            if plain.device.type != "meta":
                yield plain.untyped_storage()


def tensors_in(things: Any) -> Iterator[torch.Tensor]:
    """Every tensor in a tensor, a module (its parameters), or nested mappings and iterables of these.

    A callable is called and searched: give one for tensors that are replaced by others while somebody looks on.
    Whatever else there is (numbers, text, None, foreign objects) holds no tensor.
    """
    if isinstance(things, torch.Tensor):
        yield things
    elif isinstance(things, nn.Module):
        yield from things.parameters()
    elif isinstance(things, Mapping):
        for value in things.values():
            yield from tensors_in(value)
    elif isinstance(things, Callable):
        yield from tensors_in(things())
    elif isinstance(things, Iterable) and not isinstance(things, str | bytes):
        for value in things:
            yield from tensors_in(value)


def _plain_tensors(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors with storages inside: a DTensor's local shard, a sparse tensor's indices and values, or itself."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        for inner in (getattr(tensor, name) for name in names):
            if isinstance(inner, torch.Tensor):
                yield from _plain_tensors(inner)
    elif tensor.layout is torch.sparse_coo:
        yield from (tensor._indices(), tensor._values())
    elif tensor.layout is torch.strided:
        yield tensor
