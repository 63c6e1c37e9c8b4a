"""The ledger: what this rank holds, by kind, counted in storages.

    ledger = Ledger(model, optimizer)
    ledger.at_rest()                       # Holdings: bytes by kind, now
    with ledger.over_time() as history:
        model(inputs).sum().backward()
        optimizer.step()
    history.peak                           # the event at which most was held
    history                                # all events as a picture

It works on plain PyTorch objects, in a rank or in the notebook, and changes nothing in them. How it knows kinds:

1. It walks the model's parameters, their `.grad`, the optimizer's parameters and state, and what it was given.
2. A storage that it has met keeps its kind as long as it exists: a shard that FSDP puts aside while the gathered copy
   is in use is still counted.
3. What else autograd has saved for the backward pass is activations; what else was communicated and still exists, such
   as DDP's buckets, is other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from utils.runtime.holdings import KINDS, History, Holdings, Sample
from utils.runtime.storages import COMMUNICATED, Storages, storage_bytes, storages_of, tensors_in
from utils.runtime.watch import Watch

_COUNTERS = ("step",)  # keys in optimizers' states that count steps: one number for a tensor, not for a parameter


class Ledger:
    """Counts what belongs to a model and its optimizer on this rank.

    model: a module, or None. Its parameters are weights, its buffers are other. DDP and FSDP modules are modules.
    optimizer: an optimizer, several in a list, or None. Their state is moments, but for counters of steps, which are
        other: 4 B for each tensor, however many parameters it has. Parameters of theirs that are not the model's are
        master weights; without a model, say they are `weights` if they are.
    weights, gradients, master_weights, moments, other: more tensors of that kind, for what is not found in this way,
        such as flat buffers. Each a tensor, a module, lists or dicts of these, or a function that returns one of these
        and is asked at every sample.

    A storage that several kinds claim belongs to the first of them in the order of `KINDS`. Tensors on the meta device
    hold nothing. Raises TypeError, in one sentence, for arguments that can hold no tensor.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        optimizer: Any = None,
        *,
        weights: Any = None,
        gradients: Any = None,
        master_weights: Any = None,
        moments: Any = None,
        other: Any = None,
    ) -> None:
        if model is not None and not isinstance(model, nn.Module):
            raise TypeError(f"model is a {type(model).__name__}; give a torch.nn.Module, or weights=... for tensors.")
        self._model = model
        self._optimizers = _optimizers(optimizer)
        self._given = dict(zip(KINDS, (weights, gradients, master_weights, moments, None, other), strict=True))
        for kind, things in self._given.items():
            if isinstance(things, Iterator):  # such as `model.parameters()`, which can be gone through only once
                self._given[kind] = things = list(things)
            _refuse_what_holds_no_tensor(kind.replace(" ", "_"), things)
        self._known = Storages()  # by kind
        self._history: History | None = None
        self._watch: Watch | None = None
        self._look()

    def at_rest(self) -> Holdings:
        """What is held now. Activations are counted only while a history is recorded."""
        self._look()
        kept = self._watch.kept() if self._watch else ()
        held = dict.fromkeys(KINDS, 0)
        counted: set[int] = set()
        on_gpu = 0
        for storage, kind in (
            *self._known.alive(),
            *((storage, "activations") for storage in storages_of(kept)),
            *((storage, "other") for storage, _ in COMMUNICATED.alive()),
        ):
            if storage._cdata in counted:
                continue
            counted.add(storage._cdata)
            size = storage_bytes(storage)
            held[kind] += size
            on_gpu += size if storage.device.type == "cuda" else 0
        on_cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        return Holdings(
            **{kind.replace(" ", "_"): size for kind, size in held.items()},
            on_gpu=on_gpu,
            allocated=torch.cuda.memory_allocated() if on_cuda else None,
        )

    @contextmanager
    def over_time(self) -> Iterator[History]:
        """Sample what is held at every event of the steps inside `with`; for the events see `Watch`.

        The history can be read, sent to the notebook and drawn afterwards. Raises RuntimeError inside another one.
        """
        if self._history is not None:
            raise RuntimeError("this ledger records a history already: leave its `with` first, or make another ledger.")
        self._history = history = History()
        self._watch = Watch(self._model, self._optimizers, self._sample)
        try:
            with self._watch.on():
                yield history
        finally:
            self._history = self._watch = None

    def note(self, what: str) -> None:
        """Sample at a moment of your own, `what` in a few words. Raises RuntimeError outside `over_time`."""
        if self._history is None:
            raise RuntimeError("no history is being recorded: use `with ledger.over_time() as history:` around it.")
        self._sample("note", what, True)

    def _sample(self, phase: str, where: str, done: bool) -> None:
        self._history.samples.append(Sample(phase, where, done, self.at_rest()))

    def _look(self) -> None:
        """Note the kind of every storage that can be reached now."""
        noted: set[int] = set()

        def note(kind: str, things: Any) -> None:
            for storage in storages_of(things):
                if storage._cdata not in noted:  # the first kind to claim a storage has it
                    noted.add(storage._cdata)
                    self._known.note(storage, kind)

        weights = [*(self._model.parameters() if self._model is not None else ()), *self._tensors_given("weights")]
        note("weights", weights)
        masters = [*self._optimized_beside_the_model(), *self._tensors_given("master weights")]
        note("gradients", [t.grad for t in (*weights, *masters) if t.is_leaf and t.grad is not None])
        note("gradients", self._given["gradients"])
        note("master weights", masters)
        state = [_split(optimizer.state) for optimizer in self._optimizers]
        note("moments", [[moments for moments, _ in state], self._given["moments"]])
        note("other", [[counters for _, counters in state], self._given["other"]])
        note("other", list(self._model.buffers()) if self._model is not None else ())

    def _tensors_given(self, kind: str) -> list[torch.Tensor]:
        return list(tensors_in(self._given[kind]))

    def _optimized_beside_the_model(self) -> Iterator[torch.Tensor]:
        """The optimizers' parameters that are not, and never were, the model's."""
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if any(self._known.word(storage) != "weights" for storage in storages_of(parameter)):
                        yield parameter


def _optimizers(given: Any) -> tuple[Any, ...]:
    """The optimizers in `given`, each followed by the one that it wraps (`ZeroRedundancyOptimizer.optim`), if any."""
    if given is None:
        return ()
    if hasattr(given, "param_groups") and hasattr(given, "state"):
        return (given, *_optimizers(getattr(given, "optim", None)))
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | torch.Tensor):
        return tuple(each for one in given for each in _optimizers(one))
    raise TypeError(
        f"optimizer is a {type(given).__name__}; give a torch.optim optimizer or a list of them, or moments=... for "
        "the tensors of an optimizer of your own."
    )


def _split(state: Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    """(moments, counters) of an optimizer's state, which maps parameters to mappings of names to tensors."""
    moments, counters = [], []
    for entries in state.values():
        named = entries.items() if isinstance(entries, Mapping) else [("", entries)]
        for name, value in named:
            (counters if name in _COUNTERS else moments).append(value)
    return moments, counters


def _refuse_what_holds_no_tensor(name: str, things: Any) -> None:
    asked = _is_function(things)
    what = things() if asked else things
    leaves = list(_leaves(what))
    if leaves and not any(isinstance(leaf, torch.Tensor | nn.Module) or _is_function(leaf) for leaf in leaves):
        of = f" of {type(leaves[0]).__name__}" if leaves[0] is not what else ""
        raise TypeError(
            f"{name} {'returns' if asked else 'is'} a {type(what).__name__}{of}; give a tensor, a module, "
            "a list or dict of these, or a function "
            "that returns one."
        )


def _leaves(things: Any) -> Iterator[Any]:
    """What lies in nested mappings and iterables, without None. An iterator is left for whoever reads it."""
    if isinstance(things, torch.Tensor | nn.Module | str | bytes | Iterator) or not isinstance(things, Iterable):
        yield from () if things is None or isinstance(things, Iterator) else (things,)
    else:
        for each in things.values() if isinstance(things, Mapping) else things:
            yield from _leaves(each)


def _is_function(thing: Any) -> bool:
    return callable(thing) and not isinstance(thing, nn.Module | Mapping | torch.Tensor | type)
