"""Ring, tree or switch: what an all-reduce takes with each algorithm and protocol, by NCCL's own constants.

Seconds = latency (`nccl.nccl_latency`) + S / algbw. NCCL counts, of the bandwidth B that a ring has: ring B · n / (2 (n
- 1)); tree B · 0.92 / 2, since each byte goes up and down. LL puts a flag beside every 4 bytes and gets half of it (a
tree 1 / 3.8), LL128 a flag into every 128 bytes, 0.92 in a ring, 120/128 in a tree between nodes, 7/9 in one inside.
Source: NVIDIA/nccl, src/graph/tuning.cc. Its caps by GPU generation are left out: they bind inside a node.

With in-switch reduction (NVLS; SHARP in InfiniBand) the switch adds up; a GPU sends, and receives, (n + 1)/n · S once.
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.arguments import check_all, check_amount, check_ranks, check_text
from utils.theory.nccl import PROTOCOLS, nccl_latency
from utils.theory.sweeps import in_switch_bytes
from utils.theory.units import plain, shown

SWITCH_LATENCY = 25e-6  # seconds. NCCL's for NVLS, Simple; src/graph/tuning.cc
SWITCH_EFFICIENCY = 0.85  # of the link's rate, on Hopper; the same file
_RING = {"LL": 0.5, "LL128": 0.92, "Simple": 1.0}
_TREE = {"LL": 0.92 / 3.8, "LL128": 0.92 * 120 / 128, "Simple": 0.92}
_LL128_TREE_INSIDE = 0.92 * 7 / 9


@dataclass(frozen=True)
class Choice:
    """One way to all-reduce. latency: seconds that any size takes. rate: S over the other seconds, algbw's limit."""

    algorithm: str
    protocol: str
    latency: float
    rate: float

    def __post_init__(self) -> None:
        check_text("algorithm", self.algorithm, "what the way is called")
        if not isinstance(self.protocol, str):
            raise ValueError(f"protocol is {shown(self.protocol)}; give its name, or '' where there is none")
        check_amount("latency", self.latency, "seconds that any size takes", "such as 25e-6", least=0)
        check_amount("rate", self.rate, "bytes per second", "such as 185e9")

    def seconds(self, total_bytes: float) -> float:
        """Of an all-reduce of S bytes."""
        check_amount("total_bytes", total_bytes, "a size in bytes", "such as 4 * MiB", least=0)
        return self.latency + plain(total_bytes) / self.rate

    def __str__(self) -> str:
        return f"{self.algorithm}, {self.protocol}" if self.protocol else self.algorithm


def choices(world_size: int, nodes: int, bandwidth: float, network_latency: float = 0.0) -> tuple[Choice, ...]:
    """Ring and tree with each protocol.

    bandwidth: bytes per second that a ring's slowest edge has, one way: between nodes a node's cards together.
    nodes, network_latency: as for `nccl.nccl_latency`; so are the errors.
    """
    check_ranks("world_size", world_size, least=2)
    check_amount("bandwidth", bandwidth, "the ring's bytes per second", "such as 370e9")
    found = []
    n, b = int(world_size), float(bandwidth)
    for algorithm in ("ring", "tree"):
        for protocol in PROTOCOLS:
            latency = nccl_latency(
                "all_reduce", n, nodes, algorithm=algorithm, protocol=protocol, network_latency=network_latency
            )
            if algorithm == "ring":
                rate = b * _RING[protocol] * n / (2 * (n - 1))
            else:
                inside = protocol == "LL128" and nodes == 1
                rate = b * (_LL128_TREE_INSIDE if inside else _TREE[protocol]) / 2
            found.append(Choice(algorithm, protocol, latency, rate))
    return tuple(found)


def in_switch(world_size: int, rate: float, latency: float = SWITCH_LATENCY) -> Choice:
    """An all-reduce that the switch adds up. rate: bytes per second of one GPU's link, one way."""
    check_ranks("world_size", world_size, least=2)
    check_amount("rate", rate, "bytes per second of a link, one way", "such as 450e9")
    check_amount("latency", latency, "a time in seconds", "such as 25e-6", least=0)
    return Choice("switch", "", float(latency), SWITCH_EFFICIENCY * float(rate) / in_switch_bytes(1, world_size))


def fastest(offered: tuple[Choice, ...], total_bytes: float) -> Choice:
    """The one of them that takes the fewest seconds for S bytes; the first of those that take the same."""
    offered = check_all("offered", offered, Choice, "as `choices` gives them")
    if not offered:
        raise ValueError("offered is empty; give at least one Choice, as `choices` gives them")
    return min(offered, key=lambda choice: choice.seconds(total_bytes))


def crossover(few_steps: Choice, few_bytes: Choice) -> float | None:
    """S above which the second is faster than the first; None if that never happens, 0 if it always is.

    Where the lines latency + S / rate meet.
    """
    check_all("the two choices", (few_steps, few_bytes), Choice, "as `choices` gives them")
    if few_bytes.rate <= few_steps.rate:
        return 0.0 if few_bytes.latency < few_steps.latency and few_bytes.rate == few_steps.rate else None
    saved = few_bytes.latency - few_steps.latency
    return max(0.0, saved / (1 / few_steps.rate - 1 / few_bytes.rate))
