"""Links between ranks, and how long a collective takes over them.

Rates are bytes per second *one way*. Makers often print the sum of both directions (NVLink 4: 900 GB/s, which is
450 GB/s each way) or bits (400 Gbit/s, which is 50 GB/s); a ring sends one way and receives the other, so what bus
bandwidth can be set beside is the rate one way. Protocol leaves less: about 370 of NVLink 4's 450 GB/s (NVIDIA/nccl
issue 1442, nccl-tests issue 212).

Time is alpha + beta · bytes for each message: Hockney, "The communication challenge for MPP", Parallel Computing 20,
1994. Collectives as messages: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
MPICH", IJHPCA 19, 2005; the pipelined double tree: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth
broadcast, reduction and scan", Parallel Computing 35, 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_choice, check_ranks, unknown
from utils.theory.traffic import RING_PASSES
from utils.theory.units import GB, plain, shown


def bytes_per_second(gigabits: float) -> float:
    """What a rate in Gbit/s (1e9 bits per second) carries: 400 Gbit/s are 50e9 bytes per second."""
    check_amount("gigabits", gigabits, "a rate in Gbit/s", "such as 400", least=0)
    return plain(gigabits) * 10**9 / 8


@dataclass(frozen=True)
class LinkSpec:
    """A link as its maker states it. one_way: bytes per second in one direction; `per` says between what."""

    name: str
    one_way: float
    per: str
    source: str

    @property
    def both_ways(self) -> float:
        """The sum of the two directions, bytes per second: what NVLink is sold by."""
        return 2 * self.one_way

    @property
    def gigabits(self) -> float:
        """One way, in Gbit/s: what networks are sold by."""
        return self.one_way * 8 / 10**9

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.one_way / GB:.4g} GB/s one way ({self.gigabits:.4g} Gbit/s), "
            f"{self.both_ways / GB:.4g} GB/s both ways, per {self.per}"
        )


def _nvlink(generation: int, gpu: str, links: int, each: float) -> LinkSpec:
    """`each`: GB/s one way of one of the GPU's links."""
    return LinkSpec(f"NVLink {generation}", links * each * GB, "GPU", f"NVIDIA, {gpu}: {links} links of {each:g} GB/s")


def _pcie(generation: int, transfers: float, lanes: int = 16) -> LinkSpec:
    """Giga-transfers per second of a lane, of which 128 in 130 bits carry data."""
    rate = transfers * 1e9 * lanes * 128 / 130 / 8
    source = f"PCI-SIG: {transfers:g} GT/s a lane, 128b/130b encoding"
    return LinkSpec(f"PCIe {generation} x{lanes}", rate, "slot", source)


def _network(name: str, gigabits: float, source: str, per: str = "port") -> LinkSpec:
    return LinkSpec(name, bytes_per_second(gigabits), per, source)


_IBTA, _IEEE = "InfiniBand Trade Association, roadmap: data rate of four lanes", "IEEE 802.3"
LINKS: dict[str, LinkSpec] = {
    spec.name: spec
    for spec in (
        _nvlink(1, "P100", 4, 20),
        _nvlink(2, "V100", 6, 25),
        _nvlink(3, "A100", 12, 25),
        _nvlink(4, "H100, H200, GH200", 18, 25),
        _nvlink(5, "B200", 18, 50),
        _pcie(3, 8),
        _pcie(4, 16),
        _pcie(5, 32),
        _network("InfiniBand EDR", 100, _IBTA),
        _network("InfiniBand HDR", 200, _IBTA),
        _network("InfiniBand NDR", 400, _IBTA),
        _network("InfiniBand XDR", 800, _IBTA),
        *(_network(f"Ethernet {rate}G", rate, _IEEE) for rate in (1, 10, 25, 100, 200, 400, 800)),
        _network("EFA v1, p4d and p4de", 400, "AWS, Amazon EC2 P4 instances", "node"),
        _network("EFA v2, p5", 3200, "AWS, Amazon EC2 P5 instances", "node"),
        _network("8 x InfiniBand NDR, DGX H100", 3200, "NVIDIA DGX H100 data sheet", "node"),
    )
}


def link_spec(name: str) -> LinkSpec:
    """The link of that name in `LINKS`; ValueError with the nearest names if there is none."""
    names = {known.lower(): known for known in LINKS}
    if isinstance(name, str) and name.lower() in names:
        return LINKS[names[name.lower()]]
    raise ValueError(unknown("link", name, tuple(LINKS)))


@dataclass(frozen=True)
class AlphaBeta:
    """A message of b bytes takes alpha + beta · b seconds. alpha: seconds; beta: seconds per byte."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha, "seconds that a message takes besides its bytes", "such as 5e-6", least=0)
        check_amount("beta", self.beta, "seconds that a byte takes", "such as 1 / (50 * GB)", least=0)

    @property
    def bandwidth(self) -> float:
        """Bytes per second of a large message."""
        return 1 / self.beta if self.beta else math.inf

    def seconds(self, message_bytes: float) -> float:
        """Time of one message; ValueError for a size that is no number of at least 0."""
        check_amount("message_bytes", message_bytes, "the size of a message", "such as 4 * MiB", least=0)
        return self.alpha + self.beta * plain(message_bytes)


# (messages one after the other, bytes in them all together in units of S), for a group of n.
_Cost = Callable[[int], tuple[int, float]]


def _rounds(n: int) -> int:
    """ceil(log2 n): rounds until all n know what one knew, or the depth of a tree."""
    return (n - 1).bit_length()


def _around(passes: int) -> _Cost:
    return lambda n: (passes * (n - 1), passes * (n - 1) / n)


#: By algorithm and collective. "tree" is pipelined: its bytes flow through all levels at once, so they count as often
#: as they pass one rank; "binomial" passes the whole buffer on in every round; "halving" needs a power of two.
ALGORITHMS: dict[str, dict[str, _Cost]] = {
    "ring": {kind: _around(passes) for kind, passes in RING_PASSES.items()},
    "tree": {
        "all_reduce": lambda n: (2 * _rounds(n), 2.0),
        "broadcast": lambda n: (_rounds(n), 1.0),
        "reduce": lambda n: (_rounds(n), 1.0),
    },
    "binomial": {
        "all_reduce": lambda n: (2 * _rounds(n), 2.0 * _rounds(n)),
        "broadcast": lambda n: (_rounds(n), 1.0 * _rounds(n)),
        "reduce": lambda n: (_rounds(n), 1.0 * _rounds(n)),
    },
    "halving": {
        "all_reduce": lambda n: (2 * _rounds(n), 2 * (n - 1) / n),
        "all_gather": lambda n: (_rounds(n), (n - 1) / n),
        "reduce_scatter": lambda n: (_rounds(n), (n - 1) / n),
    },
}


def collective_seconds(
    kind: str, total_bytes: float, world_size: int, link: AlphaBeta, algorithm: str = "ring"
) -> float:
    """steps · alpha + bytes · beta: a collective of S bytes among n ranks that are joined pairwise by `link`.

    Ring all-reduce: 2 (n - 1) alpha + 2 (n - 1) / n · S · beta. Tree: 2 ceil(log2 n) alpha + 2 S · beta.
    kind, algorithm: as in `ALGORITHMS`. What a rank computes meanwhile (the sums) is left out.
    Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """
    check_amount("total_bytes", total_bytes, "a size in bytes", "such as 4 * MiB", least=0)
    _check_link(link)
    steps, share = _cost(kind, world_size, algorithm)
    return steps * link.alpha + share * link.beta * plain(total_bytes)


def crossover_bytes(world_size: int, link: AlphaBeta) -> float:
    """S above which the ring's all-reduce is faster than the tree's: n (n - 1 - ceil(log2 n)) · alpha / beta.

    Up to three ranks the ring has no more steps than the tree, so it is never slower: 0.
    """
    check_ranks("world_size", world_size)
    _check_link(link)
    n = int(world_size)
    saved = (n - 1 - _rounds(n)) * link.alpha if n > 1 else 0
    return n * saved * link.bandwidth if saved else 0.0


def fit_alpha_beta(points: Iterable[tuple[float, float]]) -> AlphaBeta:
    """alpha and beta for measured (bytes, seconds), by least squares of the *relative* errors.

    Sizes span factors of a thousand and more; absolute errors would let the largest alone decide. Neither comes out
    negative: where the best line would have it so, it is 0 and the other is fitted alone.
    Raises ValueError, in one sentence, unless there are two different sizes and every time is above 0.
    """
    try:
        pairs = [(size, seconds) for size, seconds in points]
    except (TypeError, ValueError):
        raise ValueError(
            f"points is {shown(points)}; give pairs of bytes and seconds, such as [(1e6, 0.002), (1e9, 1.0)]"
        ) from None
    for size, seconds in pairs:
        check_amount("a point's bytes", size, "the size of a message", "such as 4 * MiB", least=0)
        check_amount("a point's seconds", seconds, "the time it took", "such as 0.002")
    if len({plain(size) for size, _ in pairs}) < 2:
        raise ValueError(f"points has {len(pairs)} of one size; a line takes two: give at least two different sizes")
    # In units of the largest size, so that the sums below lose no digits.
    unit = max(float(size) for size, _ in pairs)
    u = [1 / float(seconds) for _, seconds in pairs]
    v = [float(size) / unit / float(seconds) for size, seconds in pairs]
    uu, uv, vv = (math.fsum(a * b for a, b in zip(*both, strict=True)) for both in ((u, u), (u, v), (v, v)))
    determinant = uu * vv - uv * uv
    if determinant > 0:
        alpha = (math.fsum(u) * vv - math.fsum(v) * uv) / determinant
        beta = (math.fsum(v) * uu - math.fsum(u) * uv) / determinant
    else:
        alpha, beta = -1.0, math.fsum(v) / vv
    if alpha < 0:
        alpha, beta = 0.0, math.fsum(v) / vv
    elif beta < 0:
        alpha, beta = math.fsum(u) / uu, 0.0
    return AlphaBeta(alpha, beta / unit)


def fit_link(kind: str, world_size: int, points: Iterable[tuple[float, float]], algorithm: str = "ring") -> AlphaBeta:
    """The link's alpha and beta from measured (S, seconds) of one collective: `collective_seconds` the other way round.

    Errors as for `fit_alpha_beta` and `collective_seconds`; a group of one sends nothing that could be fitted.
    """
    steps, share = _cost(kind, world_size, algorithm)
    if not steps:
        raise ValueError("world_size is 1; one rank alone sends nothing to fit: measure at least 2 ranks")
    whole = fit_alpha_beta(points)
    return AlphaBeta(whole.alpha / steps, whole.beta / share)


def _cost(kind: str, world_size: int, algorithm: str) -> tuple[int, float]:
    """(steps, bytes in units of S), after the arguments were checked."""
    check_choice("algorithm", algorithm, ALGORITHMS)
    kinds = ALGORITHMS[algorithm]
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"kind is {shown(kind)}, which has no {algorithm} here: choose one of {', '.join(kinds)}")
    check_ranks("world_size", world_size)
    n = int(world_size)
    if algorithm == "halving" and n & (n - 1):
        raise ValueError(f"world_size is {n}; halving pairs all ranks in every round: give a power of two, or a ring")
    return kinds[kind](n) if n > 1 else (0, 0.0)


def _check_link(link: object) -> None:
    if not isinstance(link, AlphaBeta):
        raise ValueError(f"link is {shown(link)}; give its alpha and beta, such as AlphaBeta(5e-6, 1 / (50 * GB))")
