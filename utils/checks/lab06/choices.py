"""06.shard_size: the clusters for which a group is to be chosen, and the right choice for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from utils.checks.lab06.places import counted
from utils.theory.hybrid import shard_sizes
from utils.theory.memory import model_states
from utils.theory.traffic import step_bytes
from utils.theory.units import GB


@dataclass(frozen=True)
class Choice:
    """What is asked: the arguments of `shard_size`. memory in bytes, goodput in bytes/s, latency in seconds."""

    parameters: float
    nodes: int
    per_node: int
    memory: float
    goodput: float
    latency: float

    @property
    def words(self) -> str:
        return (
            f"{self.parameters / 1e9:g}e9 parameters, {counted(self.nodes, 'node')} of {self.per_node}, "
            f"{self.memory / GB:g} GB, {self.goodput / GB:g} GB/s, {1e3 * self.latency:g} ms"
        )

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.parameters, self.nodes, self.per_node, self.memory, self.goodput, self.latency

    @property
    def sizes(self) -> list[int]:
        return shard_sizes(self.nodes, self.per_node)

    def held(self, size: int) -> float:
        return model_states(self.parameters, self.nodes * self.per_node, "hsdp", size).total

    def fitting(self) -> list[int]:
        return [size for size in self.sizes if self.held(size) <= self.memory]

    def across(self, size: int) -> float:
        """Bytes that each node sends across in a step."""
        return step_bytes(self.parameters, "hsdp", self.nodes * self.per_node, size, self.nodes, 2).across

    def steps(self, size: int) -> int:
        """Steps of the rings that cross between nodes."""
        if self.nodes == 1:
            return 0
        replicas = self.nodes * self.per_node // size
        return 2 * (replicas - 1) + (3 * (size - 1) if size > self.per_node else 0)

    def seconds(self, size: int) -> float:
        return self.across(size) / self.goodput + self.steps(size) * self.latency


def best(choice: Choice) -> int | None:
    """The group that fits and needs the link for the shortest time; of equals the largest; None if none fits."""
    return min(choice.fitting(), key=lambda size: (choice.seconds(size), -size), default=None)


_US = 1e-6
CASES = (
    Choice(7e9, 8, 8, 80 * GB, 50 * GB, 32 * 10 * _US),
    Choice(7e9, 8, 8, 12 * GB, 50 * GB, 32 * 10 * _US),  # no group of a node fits
    Choice(70e9, 128, 8, 60 * GB, 50 * GB, 80 * 10 * _US),
    Choice(70e9, 128, 8, 60 * GB, 400 * GB, 80 * 10 * _US),
    Choice(70e9, 128, 8, 60 * GB, 12.5 * GB, 80 * _US),
    Choice(1.3e9, 4, 4, 16 * GB, 1 * GB, 0.01),
    Choice(70e9, 2, 8, 60 * GB, 50 * GB, 1e-3),  # none fits
    Choice(13e9, 1, 8, 80 * GB, 50 * GB, 1e-3),  # one node: nothing crosses
    Choice(3e9, 6, 4, 10 * GB, 25 * GB, 0.1),  # groups of 2 and 3 nodes
    Choice(1e9, 4, 1, 8 * GB, 1 * GB, 1e-4),  # one rank on each node, and a group that fills the memory
    Choice(1e9, 32, 1, 40 * GB, 25 * GB, 0.003),
    Choice(1.3e9, 6, 2, 8 * GB, 5 * GB, 0.005),  # the best group is no power of two
    Choice(1.3e9, 12, 1, 16 * GB, 400 * GB, 0.005),
)
