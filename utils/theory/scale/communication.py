"""Seconds of a job's collectives, by level: over NVLink inside a node, over the network across nodes.

Rings, as NCCL's. Of a ring through n ranks each sends (n - 1)/n of the buffer (`theory.traffic`). A group that lies
within a node goes at NVLink's rate; one with k ranks on each node of g GPUs uses k/g of the node's cards, since g/k
such groups share them; its bytes then leave each node once. Latency as NCCL's own model has it (`theory.nccl`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from utils.theory.nccl import nccl_latency
from utils.theory.scale.hardware import Machine
from utils.theory.traffic import RING_PASSES

INSIDE, ACROSS = "inside", "across"


@dataclass(frozen=True)
class Cost:
    """Seconds of one collective, and the level whose links it waits for."""

    seconds: float
    level: str

    def __mul__(self, times: float) -> Cost:
        return Cost(self.seconds * times, self.level)


def group_cost(kind: str, total_bytes: float, ranks: int, stride: int, machine: Machine, pieces: float = 1) -> Cost:
    """Collectives of `total_bytes` together among `ranks` GPUs of which neighbours are `stride` apart.

    stride: GPUs from one member to the next; 1 for neighbours (tensor parallelism, FSDP over all), t for the
    data-parallel group of tensor-parallel units. kind: "all_reduce", "all_gather" or "reduce_scatter". pieces: into
    how many equal collectives the bytes are cut, one after the other, each with the latency of its own.
    """
    if ranks == 1:
        return Cost(0.0, INSIDE)
    passes = RING_PASSES[kind]
    sent = passes * (ranks - 1) / ranks * total_bytes
    on_node = max(1, machine.gpus_per_node // stride)
    inside = sent / machine.inside_rate
    if ranks <= on_node and ranks * stride <= machine.gpus_per_node:
        return Cost(inside + pieces * _latency(kind, ranks, 1), INSIDE)
    members = math.gcd(on_node, ranks)  # where nodes are cut unevenly the one with fewest members sets the pace
    across = sent / (machine.network_rate * members / machine.gpus_per_node)
    seconds, level = max((across, ACROSS), (inside if members > 1 else 0.0, INSIDE))
    return Cost(seconds + pieces * _latency(kind, ranks, ranks // members), level)


@lru_cache(maxsize=4096)
def _latency(kind: str, ranks: int, nodes: int) -> float:
    """NCCL's, of the faster of ring and tree where it has a tree."""
    ring = nccl_latency(kind, ranks, nodes)
    if kind != "all_reduce" or nodes == 1:
        return ring
    return min(ring, nccl_latency(kind, ranks, nodes, algorithm="tree"))
