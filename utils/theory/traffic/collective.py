"""The bytes that each rank sends and receives in a collective.

Two sets of rules stand side by side:

- **the ring's** (`collective_bytes`, `received_bytes`): what a good implementation moves, and what bus bandwidth is
  defined by. Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md and src/*.cu; the ring for all-reduce is Patarasuk and
  Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
- **gloo's** (`gloo_bytes`, `gloo_received_bytes`): what PyTorch's CPU backend really moves where that differs.

S is nccl-tests' size of a collective: the buffer of one rank for all_reduce, broadcast, reduce, send and recv; the
gathered result for all_gather; the whole input of one rank for reduce_scatter and all_to_all; the whole list at the
root for gather and scatter. All sizes are bytes, all times seconds, all bandwidths bytes per second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from utils.theory.arguments import MOST_RANKS, check_amount, check_choice, check_whole, is_whole
from utils.theory.units import MiB, plain, shown

_MOST_LISTED = 100_000
# A rule gives (sent, received) in n-ths of S for the rank that stands `place` ranks after the root (the root: 0).
_Rule = Callable[[int, int], tuple[int, int]]


def _around_the_ring(passes: int) -> _Rule:
    """Every rank passes n - 1 of its n chunks on, `passes` times over; and receives as many."""
    return lambda n, place: (passes * (n - 1), passes * (n - 1))


#: How often a ring's collective goes round: n - 1 steps each time, and in each step S / n bytes from every rank.
RING_PASSES: dict[str, int] = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}

_RING: dict[str, _Rule] = {
    **{kind: _around_the_ring(passes) for kind, passes in RING_PASSES.items()},
    "all_to_all": _around_the_ring(passes=1),  # not a ring: one chunk straight to each of the n - 1 others
    # From the root along the ring in small pieces; the rank before the root is the end of the line.
    "broadcast": lambda n, place: (n if place < n - 1 else 0, n if place > 0 else 0),
    # Along the ring into the root, each rank adding its own; the rank after the root begins.
    "reduce": lambda n, place: (n if place > 0 else 0, n if place != 1 else 0),
    "scatter": lambda n, place: (0, 1) if place else (n - 1, 0),
    "gather": lambda n, place: (1, 0) if place else (0, n - 1),
    "send": lambda n, place: (n, 0),
    "recv": lambda n, place: (0, n),
    "barrier": lambda n, place: (0, 0),
}

KINDS: tuple[str, ...] = tuple(_RING)


def collective_bytes(kind: str, total_bytes: float, world_size: int, rank: int | None = None, root: int = 0) -> float:
    """Bytes that a rank sends in one collective under the ring's rules.

    Args:
        kind: one of `KINDS`. "send" is the sending side of a message, "recv" the receiving side.
        total_bytes: S, as the module's docstring defines it for each collective.
        world_size: n, the number of ranks in the group. With n = 1 nothing is sent.
        rank: whose bytes, 0 to n - 1 within the group. None: the traffic of the busiest rank in its busier direction,
            which is nccl-tests' bus factor times S (gather: what the root *receives*; no rank sends that much).
        root: the rank a broadcast or scatter starts from, a reduce or gather ends at; ignored by the others.

    Returns bytes as a float: 2 (n - 1) / n · S need not be whole.
    Raises ValueError naming the value, what is allowed and what to do.
    """
    if rank is None:
        sent, received = _shares(_RING, kind, total_bytes, world_size, root, root)
        return max(sent, received) * plain(total_bytes) / int(world_size)
    return _shares(_RING, kind, total_bytes, world_size, rank, root)[0] * plain(total_bytes) / int(world_size)


def received_bytes(kind: str, total_bytes: float, world_size: int, rank: int | None = None, root: int = 0) -> float:
    """Bytes that a rank receives under the ring's rules; arguments and errors as for `collective_bytes`.

    Summed over the ranks, sent and received agree. `rank=None` gives what `collective_bytes` gives.
    """
    if rank is None:
        return collective_bytes(kind, total_bytes, world_size, None, root)
    return _shares(_RING, kind, total_bytes, world_size, rank, root)[1] * plain(total_bytes) / int(world_size)


@dataclass(frozen=True)
class Traffic:
    """What one rank moves, in bytes."""

    sent: float
    received: float


def traffic_by_rank(
    kind: str, total_bytes: float, world_size: int, root: int = 0, rules: str = "ring"
) -> tuple[Traffic, ...]:
    """What every rank of a group sends and receives, by rank. rules: "ring" or "gloo".

    No more than 100,000 ranks, as all are listed. "send" is a whole message here: `root` sends it, the next rank
    receives it. "recv" is the same message.
    Errors as for `collective_bytes`.
    """
    check_choice("rules", rules, ("ring", "gloo"))
    sent, received = (collective_bytes, received_bytes) if rules == "ring" else (gloo_bytes, gloo_received_bytes)
    check_group(kind, world_size, root, most=_MOST_LISTED)
    if kind in ("send", "recv"):
        message = sent("send", total_bytes, world_size, root, root)
        world_size = int(world_size)
        target = (int(root) + 1) % world_size
        return tuple(Traffic(message * (r == root), message * (r == target)) for r in range(world_size))
    world_size = int(world_size)
    return tuple(
        Traffic(sent(kind, total_bytes, world_size, rank, root), received(kind, total_bytes, world_size, rank, root))
        for rank in range(world_size)
    )


def algorithm_bandwidth(total_bytes: float, seconds: float) -> float:
    """S / t in bytes per second: how fast the caller's data was dealt with (nccl-tests' "algbw")."""
    _check_size(total_bytes)
    _check_seconds(seconds)
    return plain(total_bytes) / plain(seconds)


def bus_bandwidth(kind: str, total_bytes: float, world_size: int, seconds: float) -> float:
    """Bytes per second through the busiest rank's link: S / t times the bus factor (nccl-tests' "busbw").

    It can be set beside a link's rate, whatever the number of ranks. A barrier carries no data: 0.
    """
    _check_seconds(seconds)
    return collective_bytes(kind, total_bytes, world_size) / plain(seconds)


def gloo_bytes(kind: str, total_bytes: float, world_size: int, rank: int, root: int = 0) -> float:
    """Bytes that a rank sends when PyTorch runs the collective on gloo; arguments as for `collective_bytes`.

    Three collectives differ from the ring's rules, the others do not:

    - reduce_scatter is an all-reduce, of which each rank then keeps its slice: 2 (n - 1) / n · S. Source:
      torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, `reduce_scatter` and `reduce_scatter_tensor_coalesced`.
    - broadcast follows a binomial tree: the ranks that have the data send it whole to as many that have not, until
      all have it; with 4 ranks they send 2 S, S, 0, 0. Source: pytorch/gloo, gloo/broadcast.cc.
    - reduce is a ring reduce-scatter, then every rank sends its chunk to the root: S for each, (n - 1) / n · S for
      the root. Above 2n MiB the first part sends more, see `_reduce_by_gloo`. Source: gloo/reduce.cc.

    Measured beforehand with the kernel's TCP counters (torch 2.13, n = 2, 3, 4, 5, 8, S = 1 and 32 MiB): all kinds
    agree with these rules within 0.3%.
    """
    return _gloo(kind, total_bytes, world_size, rank, root)[0]


def gloo_received_bytes(kind: str, total_bytes: float, world_size: int, rank: int, root: int = 0) -> float:
    """Bytes that a rank receives when PyTorch runs the collective on gloo; see `gloo_bytes`."""
    return _gloo(kind, total_bytes, world_size, rank, root)[1]


def _gloo(kind: str, total_bytes: float, world_size: int, rank: int, root: int) -> tuple[float, float]:
    """(sent, received) in bytes."""
    if isinstance(kind, str) and kind == "reduce" and is_whole(world_size) and world_size != 1:
        _shares(_RING, kind, total_bytes, world_size, rank, root)  # for its checks
        return _reduce_by_gloo(plain(total_bytes), int(world_size), int(rank), int(root))
    sent, received = _shares(_GLOO, kind, total_bytes, world_size, rank, root)
    return sent * plain(total_bytes) / int(world_size), received * plain(total_bytes) / int(world_size)


def _broadcast_by_gloo(n: int, place: int) -> tuple[int, int]:
    """In round i, places 0 … 2^i - 1 have the data, and each sends it 2^i places on, if somebody is there."""
    rounds = (n - 1).bit_length()
    sends = sum(1 for i in range(rounds) if place < 2**i and place + 2**i < n)
    return sends * n, (n if place else 0)


_GLOO: dict[str, _Rule] = {
    **_RING,
    "reduce_scatter": _RING["all_reduce"],
    "broadcast": _broadcast_by_gloo,
}


def _reduce_by_gloo(total_bytes: float, n: int, rank: int, root: int) -> tuple[float, float]:
    """(sent, received) bytes of gloo's reduce: a ring reduce-scatter by segments, then a gather of chunks.

    A chunk is what one rank gathers in the end; it is cut into at least two segments of at most 1 MiB. The loop over
    the ring leaves out the last two segments of the rank's own chunk, where n - 1 chunks would do: with two segments
    a chunk (S up to 2n MiB) that is the same, above it sends more than needed.
    """
    segment = min(total_bytes / (2 * n), 1 * MiB)
    per_chunk = max(2, math.ceil(total_bytes / MiB / n))

    def within(first: int, last: int) -> float:
        """Bytes of segments first … last - 1; those past the end of the buffer are empty."""
        return min(last * segment, total_bytes) - min(first * segment, total_bytes)

    def chunk(r: int) -> float:
        return within(r * per_chunk, (r + 1) * per_chunk)

    def left_out(r: int) -> float:
        return within((r + 1) * per_chunk - 2, (r + 1) * per_chunk)

    sent = total_bytes - left_out(rank) + (0 if rank == root else chunk(rank))
    received = total_bytes - left_out((rank + 1) % n) + (total_bytes - chunk(root) if rank == root else 0)
    return sent, received


def _shares(
    rules: dict[str, _Rule], kind: str, total_bytes: float, world_size: int, rank: int, root: int
) -> tuple[int, int]:
    """(sent, received) in n-ths of S, after all arguments were checked."""
    _check_size(total_bytes)
    check_group(kind, world_size, root)
    if not is_whole(rank) or not 0 <= rank < world_size:
        raise ValueError(_outside("rank", rank, world_size))
    if world_size == 1:
        return 0, 0
    n = int(world_size)
    return rules[kind](n, (int(rank) - int(root)) % n)


def check_group(kind: str, world_size: int, root: int, kinds: tuple[str, ...] = KINDS, most: int = MOST_RANKS) -> None:
    """Raise ValueError, in one sentence, for a kind not in `kinds`, a world size below 1 or above `most`, a root
    outside the group."""
    check_choice("kind", kind, kinds)
    check_whole("world_size", world_size, "a number of ranks", most=most)
    if not is_whole(root) or not 0 <= root < world_size:
        raise ValueError(_outside("root", root, world_size))


def _check_size(total_bytes: float) -> None:
    check_amount("total_bytes", total_bytes, "a number of bytes", "such as 4 * MiB", least=0)


def _check_seconds(seconds: float) -> None:
    check_amount("seconds", seconds, "a duration", "such as 0.002")


def _outside(name: str, value: object, world_size: int) -> str:
    return (
        f"{name} is {shown(value)}, but a group of {world_size} has ranks 0 to {world_size - 1}: "
        "give a whole number in that range"
    )
