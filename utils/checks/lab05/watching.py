"""In a rank: which units are gathered at each moment of a unit's life.

Moments are marked in the record of what the rank issues, so that a collective and a moment have an order without a
clock. A unit is gathered where the storages under all its parameters have their full size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from utils.checks.ranks import Mark
from utils.runtime.storages import storage_bytes
from utils.runtime.works import WORKS

REDUCING = ("reduce_scatter", "all_reduce", "reduce", "barrier")


@dataclass(frozen=True)
class Moment:
    """What is there when something begins or ends.

    phase   "made", "forward", "backward", "step" or "evaluation"
    unit    the unit that computes, or -1 when the phase is over
    over    whether the unit's own computation is over; nothing of it is freed yet
    whole   units whose parameters have their memory
    flying  bytes of each gather that is issued and not waited for
    step    the step
    lacking parameters of the unit that have no `.grad` when its last gradient is ready
    kept    bytes of all `.grad`s
    """

    phase: str
    unit: int
    over: bool
    whole: frozenset[int]
    flying: tuple[int, ...]
    step: int = 0
    lacking: int = 0
    kept: int = 0


class Watch:
    """Notes a moment at the begin and the end of each unit's forward, and at its first and last gradient.

    groups: the parameters of each unit; all of the module's, if left out.
    """

    def __init__(
        self, units: Sequence[nn.Module], mark: Mark, groups: Sequence[Sequence[nn.Parameter]] | None = None
    ) -> None:
        groups = groups or [list(unit.parameters()) for unit in units]
        self._units = [{p: p.nbytes for p in group} for group in groups]
        self._mark = mark
        self._ready = [0] * len(units)
        self.phase, self.step = "made", 0
        self.moments: list[Moment] = []
        for number, unit in enumerate(units):
            unit.forward = self._noting(number, unit.forward)
            for p in self._units[number]:
                if p.requires_grad:
                    p.register_post_accumulate_grad_hook(lambda _, number=number: self._gradient(number))

    def begin(self, phase: str, more: str = "") -> None:
        """more: of the label in the record, such as the number of a micro-batch."""
        self.phase = phase
        self._ready = [0] * len(self._units)
        self._mark(f"step {self.step}, {phase}{more}")

    def end(self) -> None:
        """The phase is over."""
        self.note(-1, over=True)

    def note(self, unit: int, over: bool) -> None:
        whole = frozenset(
            number
            for number, sizes in enumerate(self._units)
            if all(storage_bytes(p.untyped_storage()) >= size for p, size in sizes.items())
        )
        flying = tuple(op.bytes for op in WORKS.in_use if op.kind not in REDUCING)
        lacking = (
            sum(p.grad is None for p in self._units[unit]) if self.phase == "backward" and over and unit >= 0 else 0
        )
        kept = sum(p.grad.nbytes for sizes in self._units for p in sizes if p.grad is not None)
        self.moments.append(Moment(self.phase, unit, over, whole, flying, self.step, lacking, kept))

    def _noting(self, number: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: Any, **named: Any) -> Any:
            self.note(number, over=False)
            outputs = forward(*arguments, **named)
            self.note(number, over=True)
            return outputs

        return noting

    def _gradient(self, number: int) -> None:
        self._ready[number] += 1
        trained = sum(p.requires_grad for p in self._units[number])
        if self._ready[number] == 1:
            self.note(number, over=False)
        if self._ready[number] == trained:
            self.note(number, over=True)
