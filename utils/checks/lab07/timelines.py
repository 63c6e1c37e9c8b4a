"""Timelines with a known straggler, made of the times that each rank computes in each step."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from utils.checks.shut import shut_to_answers
from utils.runtime.recorder import Op
from utils.runtime.run import Timeline

REDUCE = 0.004  # seconds from the last rank's arrival to the end of the all-reduce
SIZE = 1_000_000  # bytes


@dataclass(frozen=True)
class Story:
    """steps: for each step the seconds that each rank computes. chatter: ranks also send, reduce in pairs, broadcast.

    nccl: no operation has a `completed_at`.
    """

    name: str
    steps: tuple[tuple[float, ...], ...]
    chatter: bool = False
    nccl: bool = False

    @property
    def ranks(self) -> int:
        return len(self.steps[0])

    def late(self, rank: int) -> list[float]:
        """By step: seconds from the last of the others to this rank; negative if it comes before."""
        return [step[rank] - max(s for r, s in enumerate(step) if r != rank) for step in self.steps]

    @property
    @shut_to_answers
    def straggler(self) -> int | None:
        """The rank that comes last in more than half of the steps."""
        counts = [sum(late > 0 for late in self.late(rank)) for rank in range(self.ranks)]
        most = max(range(self.ranks), key=counts.__getitem__)
        return most if 2 * counts[most] > len(self.steps) else None

    @property
    @shut_to_answers
    def wanted(self) -> tuple[int, float] | None:
        rank = self.straggler
        return None if rank is None else (rank, median(self.late(rank)))

    def timeline(self) -> Timeline:
        """As a run would give it."""
        ops: list[list[Op]] = [[] for _ in range(self.ranks)]
        begin = 0.25
        everyone = tuple(range(self.ranks))
        for number, step in enumerate(self.steps):
            if self.chatter:
                for rank in everyone:
                    ops[rank] += _chatter(rank, self.ranks, number, begin + 0.3 * min(step))
            arrived = [begin + seconds for seconds in step]
            end = max(arrived) + REDUCE
            for rank in everyone:
                done = None if self.nccl else end
                ops[rank].append(_op("all_reduce", everyone, "all", number + 1, arrived[rank], done))
            begin = end
        return Timeline(tuple(map(tuple, ops)))


def _chatter(rank: int, ranks: int, number: int, at: float) -> list[Op]:
    """An all-reduce with the neighbour, a broadcast to all, for which rank 1 comes last, and from rank 0 a word to the
    last rank: later on high ranks than on low ones.
    """
    first = rank - rank % 2
    pair = tuple(range(first, min(first + 2, ranks)))
    at += 0.001 * (ranks - rank)
    found = [_op("all_reduce", pair, f"pair {first}", number + 1, at, at + 0.001)]
    if ranks > 1:
        late = 0.004 * (rank == 1)
        found.append(_op("broadcast", tuple(range(ranks)), "all", number + 1, at + 0.001 + late, at + 0.006))
    if rank in (0, ranks - 1):
        kind = "send" if rank == 0 else "recv"
        peer = ranks - 1 - rank
        sent = _op(kind, (0, ranks - 1), "all", number + 1, at + 0.002, at + 0.003)
        found.append(replace(sent, peer=peer))
    return found


def _op(kind: str, ranks: tuple[int, ...], group: str, sequence: int, issued: float, done: float | None) -> Op:
    return Op(kind, SIZE, float(SIZE), ranks, group, sequence, None, None, issued, done)


def _steps(count: int, base: Sequence[float], jitter: float = 0.0005, **special: Sequence[float]) -> tuple:
    """`count` steps of about `base`; `special`: s3=… replaces step 3."""
    draw = random.Random(7)
    made = [tuple(seconds + draw.uniform(0, jitter) for seconds in base) for _ in range(count)]
    for name, step in special.items():
        made[int(name[1:])] = tuple(step)
    return tuple(made)


STORIES = (
    Story("one slow rank", _steps(9, (0.050, 0.052, 0.081, 0.051), s5=(0.05, 0.052, 0.4, 0.051))),
    Story("a long first step of another rank", _steps(9, (0.050, 0.075, 0.051, 0.050), s0=(0.9, 0.4, 0.3, 0.35))),
    Story(
        "one long pause of a fast rank",
        _steps(9, (0.050, 0.051, 0.052, 0.070), s4=(0.050, 0.051, 1.5, 0.070), s6=(0.05, 0.051, 0.052, 0.060)),
    ),
    Story("two slow ranks", _steps(9, (0.050, 0.080, 0.051, 0.087, 0.050, 0.049))),
    Story("as NCCL's, without `completed_at`", _steps(8, (0.071, 0.050, 0.051)), nccl=True),
    Story("sends and pairs beside", _steps(9, (0.083, 0.053, 0.051, 0.050)), chatter=True),
    Story("two ranks", _steps(7, (0.050, 0.059))),
    Story(
        "late in five steps of nine, early in four",
        tuple(
            (0.050, 0.052 + early_or_late, 0.051 - 0.0005 * (number % 2), 0.052)
            for number, early_or_late in enumerate((0.03, -0.02, 0.01, -0.03, 0.05, 0.02, -0.02, 0.04, -0.01))
        ),
    ),
    Story(
        "two ranks, each late in half of the steps",
        tuple((0.05 + 0.02 * (step % 4 < 2), 0.06 + 0.001 * (step % 3)) for step in range(12)),
    ),
    Story(
        "late in half of the steps, early in the others",
        tuple((0.050, 0.051, 0.090 if step % 2 else 0.020, 0.052 - 0.004 * (step % 4 == 0)) for step in range(12)),
    ),
    Story(
        "all in turn",
        tuple(tuple(0.05 + 0.001 * rank + 0.03 * (step % 4 == rank) for rank in range(4)) for step in range(12)),
    ),
)
