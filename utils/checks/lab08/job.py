"""What lab 08 plans: a small model on a cluster, as it is known before anything runs, and what a step of it came to."""

from __future__ import annotations

from dataclasses import dataclass

STRATEGIES = ("ddp", "zero1", "fsdp", "hsdp")
FP32 = 4  # bytes of a number


@dataclass(frozen=True)
class Job:
    """A training in fp32 with Adam, one micro-batch a step, on `nodes` nodes of `per_node` ranks.

    parameters: numbers of each unit, in forward order. forward: seconds of each unit's forward pass on a rank; its
    backward pass takes twice as long. across: bytes per second that a node's link to the others carries, each way.
    inside: bytes per second that a rank passes on within its node. latency: seconds of one step of a ring.
    """

    parameters: tuple[int, ...]
    forward: tuple[float, ...]
    nodes: int
    per_node: int
    across: float
    inside: float
    latency: float

    @property
    def ranks(self) -> int:
        """N."""
        return self.nodes * self.per_node

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each unit's weights, as many as of its gradients."""
        return tuple(FP32 * count for count in self.parameters)

    @property
    def words(self) -> str:
        """In a few words, for a check's message."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        return f"{nodes} of {self.per_node}, {len(self.parameters)} units, {sum(self.parameters):,} numbers"


@dataclass(frozen=True)
class Step:
    """A step of one strategy, as predicted or as measured.

    memory: bytes of states on a rank. across: bytes that a node sends to the others. seconds: of the step;
    communicating: of them those in which at least one collective was under way.
    """

    memory: float
    across: float
    seconds: float
    communicating: float

    @property
    def alone(self) -> float:
        """Seconds in which no collective was under way."""
        return self.seconds - self.communicating
