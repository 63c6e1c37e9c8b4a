"""NCCL's model of a ring's or a tree's latency, by protocol: what it chooses between the two with.

Source: NVIDIA/nccl, src/graph/tuning.cc at commit 5067397c. A step costs more over the network than over NVLink, and
more under protocols that move large data well: LL and LL128 are for small messages, Simple is for large ones.
These constants are defaults for all machines. On 8 H100 they agree with the 17 microseconds measured for 16 KiB
(ring, LL: 15); between nodes joined by EFA they are far too low (ring, LL, 2 x 8: 40 against 112 measured, as long as
`network_latency` is 0): there, measure the latency and use `links.fit_link`.

Left out: the factor of 1.4 (1.9 below compute capability 8.0) by which NCCL lengthens the latency of a ring all-reduce
across nodes under Simple, from 64 bytes for each rank and channel on; NVLS and CollNet.
"""

from __future__ import annotations

from utils.theory.arguments import check_amount, check_choice, check_divisor, check_ranks
from utils.theory.traffic import RING_PASSES

PROTOCOLS = ("LL", "LL128", "Simple")
INSIDE = ("NVLink", "PCIe")

# Microseconds, in the order of PROTOCOLS.
_BASE = {"ring": (6.6, 14.0, 8.4), "tree": (6.8, 14.0, 8.4)}
_STEP = {
    "NVLink": {"ring": (0.6, 1.9, 3.4), "tree": (0.6, 1.25, 4.0)},
    "PCIe": {"ring": (1.0, 2.5, 5.7), "tree": (1.0, 1.9, 4.0)},
    "network": {"ring": (2.7, 4.0, 14.0), "tree": (5.0, 8.5, 14.0)},
}


def nccl_latency(
    kind: str,
    world_size: int,
    nodes: int = 1,
    algorithm: str = "ring",
    protocol: str = "Simple",
    inside: str = "NVLink",
    network_latency: float = 0.0,
    network_overhead: float = 1e-6,
) -> float:
    """Seconds that a collective takes besides its bytes.

    Ring: base + (steps inside nodes) · inside + (steps between nodes) · network; an all-reduce has 2 (n - 1) steps,
    2 (nodes - 1) of them between nodes, all-gather and reduce-scatter half of each. With several nodes a step inside
    takes at least the network's overhead, three times that under Simple; with one rank a node a step between nodes
    takes what the tree's does. Tree, all-reduce alone: base + 2 ((n / nodes - 1) · inside + log2(nodes) · network).

    Args:
        kind: "all_reduce", "all_gather" or "reduce_scatter".
        world_size: n. nodes: a divisor of it.
        algorithm: "ring" or "tree". protocol: one of `PROTOCOLS`. inside: the link within a node, one of `INSIDE`.
        network_latency: seconds that the network's plugin states for a message, counted twice under Simple.
        network_overhead: seconds to post a message: 1 microsecond, on AMD's CPUs 2.

    NCCL takes log2 of the nodes as a whole number, rounded down. With one rank: 0. Raises ValueError, in one sentence.
    """
    for name, value, known in (
        ("algorithm", algorithm, tuple(_BASE)),
        ("protocol", protocol, PROTOCOLS),
        ("inside", inside, INSIDE),
    ):
        check_choice(name, value, known)
    check_choice("kind", kind, RING_PASSES if algorithm == "ring" else ("all_reduce",))
    check_ranks("world_size", world_size)
    check_divisor("nodes", nodes, world_size, "world_size", "nodes hold equally many ranks")
    for name, value in (("network_latency", network_latency), ("network_overhead", network_overhead)):
        check_amount(name, value, "a time in seconds", "such as 5e-6", least=0)
    n, nodes, column = int(world_size), int(nodes), PROTOCOLS.index(protocol)
    if n == 1:
        return 0.0
    within = _STEP[inside][algorithm][column]
    network = _STEP["network"]["tree" if n == nodes else algorithm][column]
    network += 1e6 * float(network_latency) * (2 if protocol == "Simple" else 1)
    if algorithm == "ring":
        if nodes > 1:
            within = max(within, 1e6 * float(network_overhead) * (3 if protocol == "Simple" else 1))
        steps = (n - nodes) * within + (nodes - 1) * network
    else:
        steps = (n // nodes - 1) * within + (nodes.bit_length() - 1) * network
    return (_BASE[algorithm][column] + RING_PASSES[kind] * steps) / 1e6
