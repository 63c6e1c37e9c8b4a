"""The ring all-reduce step by step, and what it costs in bytes, seconds and buffer memory.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel
and Distributed Computing 69, 2009. Times by alpha + beta · bytes for each message, see `utils.theory.links`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from utils.theory.arguments import check_whole
from utils.theory.collectives import Block, Holdings
from utils.theory.links import AlphaBeta, collective_seconds
from utils.theory.traffic import algorithm_bandwidth, bus_bandwidth, collective_bytes
from utils.theory.units import plain


@dataclass(frozen=True)
class Transfer:
    """One message: rank `source` sends its part number `part` to rank `target`, its neighbour."""

    source: int
    target: int
    part: int


@dataclass(frozen=True)
class RingState:
    """The ranks after a step. step: 0 before the first. transfers: the messages of this step, one for each rank.

    adds: the parts that arrived were added (first half), not copied (second half).
    """

    step: int
    adds: bool
    transfers: tuple[Transfer, ...]
    held: Holdings


def ring_states(world_size: int) -> tuple[RingState, ...]:
    """The state before the first of 2 (n - 1) steps, then the one after each.

    In step s = 1 … n - 1 rank r sends part r - s to rank r + 1, which adds it to its own; part r is then complete on
    rank r. In the next n - 1 steps, counted from 1 again, it sends part r - s + 1, which is copied. All modulo n.
    Raises ValueError for a world size below 1.
    """
    check_whole("world_size", world_size, "a number of ranks")
    n = int(world_size)
    held = tuple(tuple(Block((rank,), part) for part in range(n)) for rank in range(n))
    states = [RingState(0, True, (), held)]
    for step in range(1, 2 * (n - 1) + 1):
        adds = step < n
        shift = step if adds else step - n
        transfers = tuple(Transfer(rank, (rank + 1) % n, (rank - shift) % n) for rank in range(n))
        held = _after(held, transfers, adds)
        states.append(RingState(step, adds, transfers, held))
    return tuple(states)


def _after(held: Holdings, transfers: tuple[Transfer, ...], adds: bool) -> Holdings:
    """All messages are sent before any arrives."""
    rows = [list(row) for row in held]
    for each in transfers:
        sent, own = held[each.source][each.part], held[each.target][each.part]
        origins = tuple(sorted((*sent.origins, *own.origins))) if adds else sent.origins
        rows[each.target][each.part] = Block(origins, each.part)
    return tuple(tuple(row) for row in rows)


@dataclass(frozen=True)
class RingCost:
    """One all-reduce of S = `total_bytes` among n = `world_size` ranks in a ring of links `link`.

    Made by `ring_cost`, which checks the arguments.
    """

    total_bytes: float
    world_size: int
    link: AlphaBeta

    @property
    def steps(self) -> int:
        """Messages one after the other: 2 (n - 1)."""
        return 2 * (self.world_size - 1)

    @property
    def sent(self) -> float:
        """Bytes that each rank sends, and receives: 2 (n - 1) / n · S."""
        return collective_bytes("all_reduce", self.total_bytes, self.world_size)

    @property
    def latency_seconds(self) -> float:
        """What the steps cost whatever S is: 2 (n - 1) · alpha."""
        return self.steps * self.link.alpha

    @property
    def seconds(self) -> float:
        """2 (n - 1) · alpha + 2 (n - 1) / n · S · beta; the additions are left out."""
        return collective_seconds("all_reduce", self.total_bytes, self.world_size, self.link)

    @property
    def tree_seconds(self) -> float:
        """The same by a binomial tree, which hands all S on in each of 2 ceil(log2 n) rounds."""
        return collective_seconds("all_reduce", self.total_bytes, self.world_size, self.link, "binomial")

    @property
    def algbw(self) -> float:
        """S / t in bytes per second; 0 where nothing is to be done."""
        return algorithm_bandwidth(self.total_bytes, self.seconds) if self.seconds else 0.0

    @property
    def busbw(self) -> float:
        """Bytes per second through each rank's link; 0 where nothing is to be done."""
        return bus_bandwidth("all_reduce", self.total_bytes, self.world_size, self.seconds) if self.seconds else 0.0

    @property
    def buffer(self) -> float:
        """Bytes a rank needs beside the tensor: room for the part that arrives and is to be added, S / n.

        The second half needs none, since parts arrive in their places.
        """
        return self.total_bytes / self.world_size if self.world_size > 1 else 0.0

    @cached_property
    def crossover(self) -> float:
        """S above which the ring is faster than the binomial tree, in bytes; 0 where it is never slower.

        (n - 1 - r) · alpha / ((r - (n - 1) / n) · beta) with r = ceil(log2 n) rounds.
        """
        n = self.world_size
        rounds = (n - 1).bit_length()
        saved = (n - 1 - rounds) * self.link.alpha if n > 1 else 0
        return saved * self.link.bandwidth / (rounds - (n - 1) / n) if saved else 0.0


def ring_cost(total_bytes: float, world_size: int, link: AlphaBeta) -> RingCost:
    """What a ring all-reduce of S bytes costs. Raises ValueError as `links.collective_seconds` does."""
    collective_seconds("all_reduce", total_bytes, world_size, link)  # for its checks
    return RingCost(plain(total_bytes), int(world_size), link)
