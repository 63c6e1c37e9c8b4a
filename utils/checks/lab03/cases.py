"""What the ranks hold before a ring's answer runs, and what is kept of them afterwards.

Two kinds of content. "Who" content is 16 to the power of the rank: a sum of such numbers, written with the base 16,
tells how often each rank's is in it. "Numbers" are whole and so large that a smaller type would round them, and so
small that a sum in the tensor's own type is exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.lab03.receives import receives_checked
from utils.checks.ranks import Mark, hold_back
from utils.runtime.wire import WireBytes, read_counters, wire_bytes_since

BEGUN, RETURNED = "begun", "returned"

# By type: the smallest number, and the range above it from which numbers are drawn. bfloat16 holds whole numbers up to
# 256 exactly, float16 up to 2048, float32 up to 2**24, float64 up to 2**53; the sum of eight stays below that.
_DRAWN = {
    torch.float32: (2**19, 2**20),
    torch.float64: (2**45, 2**20),
    torch.float16: (1, 200),
    torch.bfloat16: (1, 30),
    torch.int32: (2**26, 2**20),
    torch.int64: (2**54, 2**20),
}
MIB_OF_FLOATS = 2**18  # elements


@dataclass(frozen=True)
class Case:
    """A tensor on each rank. counted: the bytes that its sockets move are read as well.

    inside: an all-gather's `part` lies in the tensor that is to be filled.
    """

    length: int
    ranks: int
    dtype: torch.dtype = torch.float32
    who: bool = False
    counted: bool = False
    inside: bool = False

    @property
    def name(self) -> str:
        kind = "" if self.dtype == torch.float32 else f" of {self.type_name}"
        where = ", `part` inside `tensor`" if self.inside else ""
        return f"{self.length} element{'' if self.length == 1 else 's'}{kind}, {self.ranks} ranks{where}"

    @property
    def type_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def remark(self) -> str:
        """What is special about the length; empty if nothing is."""
        if self.inside:
            return " Here `part` shares the memory of `tensor`: what is written into one is in the other."
        if self.length < self.ranks:
            return f" There are {self.length} elements for {self.ranks} ranks: some parts are empty."
        if self.length % self.ranks:
            return f" {self.ranks} does not divide {self.length}: parts of `tensor_split` differ by one element."
        return ""

    def start(self, rank: int) -> torch.Tensor:
        """Rank r's tensor (length,) before."""
        if self.who:
            return torch.full((self.length,), 16.0**rank, dtype=self.dtype)
        least, above = _DRAWN[self.dtype]
        drawn = torch.randint(above, (self.length,), generator=torch.Generator().manual_seed(rank))
        return (drawn + least).to(self.dtype)

    def starts(self) -> list[torch.Tensor]:
        """By rank, the tensor before."""
        return [self.start(rank) for rank in range(self.ranks)]

    def total(self) -> torch.Tensor:
        """The sum over the ranks, exact."""
        return sum(self.starts())


@dataclass(frozen=True)
class After:
    """One rank after the answer. returned: a copy of the tensor, or in words what else was returned.

    wire: what its sockets sent and received meanwhile, in a counted case where the system counts.
    """

    tensor: torch.Tensor
    returned: torch.Tensor | str
    wire: WireBytes | None


def ring_cases(ranks: int) -> tuple[Case, ...]:
    """Whole parts first; then sizes that `ranks` does not divide, among them fewer elements than ranks; then types.

    Many ranks on few cores are slow, so beyond four there are fewer cases.
    """
    odd = 12 * ranks + ranks - 1
    few = Case(ranks - 1, ranks) if ranks > 2 else Case(1, ranks)
    types = (torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64)
    cases = (
        Case(4 * ranks, ranks, torch.float64, who=True),
        Case(4 * ranks, ranks),
        Case(odd, ranks),
        few,
        Case(MIB_OF_FLOATS, ranks, counted=True),
    )
    if ranks > 4:
        return (*cases, Case(24 * ranks + 1, ranks, torch.float16), Case(24 * ranks + 1, ranks, torch.int64))
    odd_who = Case(odd, ranks, torch.float64, who=True)
    return (*cases[:3], odd_who, *cases[3:], *(Case(24 * ranks + 1, ranks, dtype) for dtype in types))


def gather_cases(ranks: int) -> tuple[Case, ...]:
    """The same, and two in which the part lies inside the tensor."""
    return (*ring_cases(ranks), *(Case(length, ranks, inside=True) for length in (4 * ranks, 12 * ranks + ranks - 1)))


Call = Callable[[Case, Any, torch.Tensor], tuple[torch.Tensor, Any]]
"""(case, answer, this rank's numbers) -> the tensor that the answer was to write, and what it returned."""


def observe(case: Case, call: Call, answer: Any, mark: Mark) -> After:
    """In a rank: the answer on this rank's numbers."""
    start = case.start(dist.get_rank())
    if case.who and not case.length % case.ranks and case.ranks == 4:
        hold_back(case.ranks - 1)
    before = None
    if case.counted:  # nobody sends before all have read their counters
        dist.barrier()
        before = read_counters()
        dist.barrier()
    mark(BEGUN)
    with receives_checked():
        tensor, returned = call(case, answer, start)
    mark(RETURNED)
    wire = None
    if case.counted:  # and all is received before they are read again
        dist.barrier()
        wire = wire_bytes_since(before)
    return After(tensor, _kept(returned), wire)


def _kept(returned: Any) -> torch.Tensor | str:
    if isinstance(returned, torch.Tensor):
        return returned.detach().clone()
    return "None" if returned is None else f"a {type(returned).__name__}"
