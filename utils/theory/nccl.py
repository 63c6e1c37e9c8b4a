"""NCCL's own model of a collective's latency, by algorithm and protocol: what it chooses between ring and tree with.

Source: NVIDIA/nccl, src/graph/tuning.cc at commit 5067397c. A step costs more over the network than over NVLink, and
more under protocols that move large data well: LL and LL128 are for small messages, Simple is for large ones.
These constants are defaults for all machines. On 8 H100 they agree with the 17 microseconds measured for 16 KiB
(ring, LL: 15); between nodes joined by EFA they are far too low (ring, LL, 2 x 8: 29 against 112 measured): there,
measure the latency and use `links.fit_link`.
"""

from __future__ import annotations

from utils.theory.arguments import check_whole, is_whole, unknown
from utils.theory.units import shown

PROTOCOLS = ("LL", "LL128", "Simple")
INSIDE = ("NVLink", "PCIe")

# Microseconds, in the order of PROTOCOLS.
_BASE = {"ring": (6.6, 14.0, 8.4), "tree": (6.8, 14.0, 8.4)}
_STEP = {
    "NVLink": {"ring": (0.6, 1.9, 3.4), "tree": (0.6, 1.25, 4.0)},
    "PCIe": {"ring": (1.0, 2.5, 5.7), "tree": (1.0, 1.9, 4.0)},
    "network": {"ring": (2.7, 4.0, 14.0), "tree": (5.0, 8.5, 14.0)},
}
_PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


def nccl_latency(
    kind: str,
    world_size: int,
    nodes: int = 1,
    algorithm: str = "ring",
    protocol: str = "Simple",
    inside: str = "NVLink",
) -> float:
    """Seconds that a collective takes besides its bytes.

    Ring: base + (steps inside nodes) · inside + (steps between nodes) · network; an all-reduce has 2 (n - 1) steps,
    2 (nodes - 1) of them between nodes, all-gather and reduce-scatter half of each. Tree, all-reduce alone:
    base + 2 ((n / nodes - 1) · inside + log2(nodes) · network).

    Args:
        kind: "all_reduce", "all_gather" or "reduce_scatter".
        world_size: n. nodes: a divisor of it.
        algorithm: "ring" or "tree". protocol: one of `PROTOCOLS`. inside: the link within a node, one of `INSIDE`.

    NCCL takes log2 of the nodes as a whole number, rounded down. Its factor of 1.4 for large multi-node rings under
    Simple is left out. With one rank: 0. Raises ValueError, in one sentence.
    """
    for name, value, known in (
        ("algorithm", algorithm, tuple(_BASE)),
        ("protocol", protocol, PROTOCOLS),
        ("inside", inside, INSIDE),
        ("kind", kind, tuple(_PASSES) if algorithm == "ring" else ("all_reduce",)),
    ):
        if not isinstance(value, str) or value not in known:
            raise ValueError(unknown(name, value, known))
    check_whole("world_size", world_size, "a number of ranks")
    if not is_whole(nodes) or nodes < 1 or world_size % nodes:
        raise ValueError(
            f"nodes is {shown(nodes)}; nodes hold equally many ranks: give a whole number of at least 1 that divides "
            f"world_size = {shown(world_size)}"
        )
    n, nodes, column = int(world_size), int(nodes), PROTOCOLS.index(protocol)
    if n == 1:
        return 0.0
    within, network = _STEP[inside][algorithm][column], _STEP["network"][algorithm][column]
    if algorithm == "ring":
        steps = (n - nodes) * within + (nodes - 1) * network
    else:
        steps = (n // nodes - 1) * within + (nodes.bit_length() - 1) * network
    return (_BASE[algorithm][column] + _PASSES[kind] * steps) / 1e6
