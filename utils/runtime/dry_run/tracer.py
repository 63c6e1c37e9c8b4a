"""PyTorch's FSDPMemTracker, which also writes down the bytes of each kind over the step, and every collective.

The tracker sees each operation and each storage that comes, changes or goes. It keeps the peak of the whole step and of
each unit; a curve needs the parts between FSDP's hooks too, so they are taken down here, one after the other: a part's
largest moment, and what is left at its end. It rests on names of torch 2.13 that begin with an underscore.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import nn
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker, _FSDPRefType

from utils.theory.moments import Moment

#: By the tracker's kind, the field of `theory.moments.Moment` that counts it.
_FIELDS: dict[Any, str] = {
    _FSDPRefType.SHARDED_PARAM: "weights",
    _FSDPRefType.UNSHARDED_PARAM: "gathered",
    _FSDPRefType.SHARDED_GRAD: "gradients",
    _FSDPRefType.UNSHARDED_GRAD: "working",
    _FSDPRefType.BUFFER: "weights",
    _FSDPRefType.ACT: "activations",
    _FSDPRefType.INP: "activations",
    _FSDPRefType.TEMP: "working",
    _FSDPRefType.ALL_GATHER: "buffers",
    _FSDPRefType.REDUCE_SCATTER: "buffers",
    _FSDPRefType.OPT: "optimizer",
}
_TOTAL = "Total"
_C10D = torch.ops.c10d
_KINDS = {
    _C10D._allgather_base_.default: "all_gather",
    _C10D._reduce_scatter_base_.default: "reduce_scatter",
    _C10D.allreduce_.default: "all_reduce",
}

#: By phase and part of the step, what FSDP fills in it: in backward the units are there, and it gathers the next one.
_FILLING = {
    ("forward", "gather"): "gathered",
    ("backward", "gather"): "buffers",
    ("backward", "reduce"): "buffers",
}

Snapshot = dict[Any, int]
Told = Callable[[str, str, str, Moment, Moment], None]


class Tracer(FSDPMemTracker):
    """tell: called at the end of each part of the step with its phase, unit, name, largest moment and last moment.

    collectives: (kind, S in bytes) -> how often, S being the output of an all-gather, the input of a reduce-scatter.
    at_rest: bytes of the optimizer's state; what OPT counts beyond them is needed for the time of its step alone.

    The tracker names what FSDP allocates only when it is filled. What came meanwhile and has no name yet is counted as
    gathered in a forward pass, which makes the parameters in the first step, and as a buffer in a backward pass.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, at_rest: int, tell: Told) -> None:
        super().__init__(model, optimizer)
        self.collectives: Counter[tuple[str, int]] = Counter()
        self._at_rest, self._tell = at_rest, tell
        self._names = {module: name or "root" for name, module in model.named_modules()}
        self._part = ("forward", "root", "begin")
        self._largest: Snapshot = {_TOTAL: -1}
        self._unnamed = 0

    def begin(self, phase: str, unit: str, part: str) -> None:
        """End the part of the step that was going on, and begin another."""
        last = self._now()
        largest = self._largest if self._largest[_TOTAL] >= last[_TOTAL] else last
        self._tell(*self._part, self._moment(largest), self._moment(last))
        self._part, self._largest = (phase, unit, part), {_TOTAL: -1}
        self._unnamed = _unnamed(last)

    def _now(self) -> Snapshot:
        """Bytes of each kind; all tensors of a dry run lie on one device."""
        return dict(next(iter(self._curr_mem_snap.values()), {_TOTAL: 0}))

    def _moment(self, snapshot: Snapshot) -> Moment:
        phase, unit, part = self._part
        sizes: Counter[str] = Counter()
        for kind, size in snapshot.items():
            if kind != _TOTAL:
                sizes[_FIELDS[kind]] += size
        filled = _FILLING.get((phase, part))
        if filled and (more := _unnamed(snapshot) - self._unnamed) > 0:
            of = "working" if snapshot.get(_FSDPRefType.TEMP, 0) >= more else "activations"
            sizes[of] -= more
            sizes[filled] += more
        sizes["temporaries"] = max(0, sizes["optimizer"] - self._at_rest)
        sizes["optimizer"] -= sizes["temporaries"]
        return Moment(f"{phase}, {unit}, {part}", **sizes)

    def _update_peak_stats(self, peak_state: Any) -> None:
        """Called after each operation. The tracker would look at every unit here, and copy its counts."""
        for snapshot in self._curr_mem_snap.values():
            if snapshot[_TOTAL] > self._largest[_TOTAL]:
                self._largest = dict(snapshot)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _KINDS:
            kind, first = _KINDS[func], args[0][0] if isinstance(args[0], list) else args[0]
            whole = args[1] if kind == "reduce_scatter" else first
            self.collectives[kind, whole.numel() * whole.element_size()] += 1
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _during(self, hook: Callable, module: nn.Module, phase: str, part: str, then: str) -> Callable:
        """The hook as a part of the step of its own; `then`: whose computation goes on behind it, "" for the unit's."""
        unit = self._names[module]

        @wraps(hook)
        def inner(*args: Any, **kwargs: Any) -> Any:
            self.begin(phase, unit, part)
            found = hook(*args, **kwargs)
            self.begin(phase, then or unit, "compute")
            return found

        return inner

    def _fsdp_state_pre_forward(self, fsdp_mod: Any, orig_fsdp_state_pre_fw: Callable) -> Callable:
        hook = super()._fsdp_state_pre_forward(fsdp_mod, orig_fsdp_state_pre_fw)
        return self._during(hook, fsdp_mod, "forward", "gather", "")

    def _fsdp_state_post_forward(self, fsdp_mod: Any, orig_fsdp_state_post_fw: Callable) -> Callable:
        hook = super()._fsdp_state_post_forward(fsdp_mod, orig_fsdp_state_post_fw)
        return self._during(hook, fsdp_mod, "forward", "free", "root")

    def _fsdp_param_group_pre_backward(self, fsdp_mod: Any, orig_fsdp_param_group_pre_backward: Callable) -> Callable:
        hook = super()._fsdp_param_group_pre_backward(fsdp_mod, orig_fsdp_param_group_pre_backward)
        return self._during(hook, fsdp_mod, "backward", "gather", "")

    def _fsdp_param_group_post_backward(self, fsdp_mod: Any, orig_fsdp_param_group_post_backward: Callable) -> Callable:
        hook = super()._fsdp_param_group_post_backward(fsdp_mod, orig_fsdp_param_group_post_backward)
        return self._during(hook, fsdp_mod, "backward", "reduce", "root")


def _unnamed(snapshot: Snapshot) -> int:
    """Bytes that the tracker takes for activations or for work of the backward pass."""
    return sum(snapshot.get(kind, 0) for kind, field in _FIELDS.items() if field in ("activations", "working"))
