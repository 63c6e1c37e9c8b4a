"""What a training step moves, as a list of collectives, by rank and by node; it prints itself as a table.

Nodes hold N / nodes ranks each, in rank order. Each ring runs through its ranks in order, so wherever its ranks lie
together on a node, one of them sends across the border and the others stay inside. A library that splits the data over
several rings, each leaving the node through another rank, moves the same bytes in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from utils.theory.traffic.collective import collective_bytes
from utils.theory.units import format_bytes

# A collective of a step: (kind, what for, S in bytes, its group, how many times). Groups: "shard", "replica".
Entry = tuple[str, str, float, str, int]
_ALONE = "there is no other rank"


@dataclass(frozen=True)
class Collective:
    """One kind of collective in a step. S: `total_bytes` (nccl-tests' size). sent: by each rank, all `times`."""

    kind: str
    purpose: str
    total_bytes: float
    group_size: int
    times: int
    sent: float


@dataclass(frozen=True)
class NodeTraffic:
    """Bytes that the ranks of one node send in a step: over links inside it, and across its border."""

    inside: float
    across: float


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """Bytes of one step.

    per_rank: what each rank sends; all ranks send alike, and receive as much.
    inside, across: what the ranks of one node send over links inside it, and across its border; as much comes in.
        All nodes are alike, unless shard groups lie askew to the nodes: then these are those of the first node that
        sends most across; see `by_node`.
    """

    strategy: str
    parameters: float
    world_size: int
    shard_size: int
    nodes: int
    rules: str
    per_rank: float
    inside: float
    across: float
    plan: tuple[Entry, ...]

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What the step is made of. Groups of one rank are left out: nothing is sent there."""
        sizes = {"shard": self.shard_size, "replica": self.world_size // self.shard_size}
        return tuple(
            Collective(kind, purpose, size, sizes[group], times, times * self._sent(kind, size, sizes[group]))
            for kind, purpose, size, group, times in self.plan
            if sizes[group] > 1
        )

    @property
    def by_node(self) -> tuple[NodeTraffic, ...]:
        """One entry a node."""
        on_node = self.world_size // self.nodes
        sent = {"shard": 0.0, "replica": 0.0}
        sizes = {"shard": self.shard_size, "replica": self.world_size // self.shard_size}
        for kind, _, size, group, times in self.plan:
            sent[group] += times * self._sent(kind, size, sizes[group])
        return tuple(
            NodeTraffic(
                (on_node - shard) * sent["shard"] + (on_node - replica) * sent["replica"],
                shard * sent["shard"] + replica * sent["replica"],
            )
            for shard, replica in (
                (
                    leaving_shard_rings(node, on_node, self.shard_size),
                    leaving_replica_rings(on_node, self.shard_size, self.nodes),
                )
                for node in range(self.nodes)
            )
        )

    def _sent(self, kind: str, total_bytes: float, group_size: int) -> float:
        return collective_bytes(moved_as(kind, self.rules), total_bytes, group_size)

    def __str__(self) -> str:
        heads, rows, total = self._table()
        if not rows:
            return f"{self._title()}\nnothing is sent: {self._why_nothing}"
        widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
        lines = [
            "  ".join(
                cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (heads, *rows)
        ]
        return "\n".join([self._title(), *lines, total])

    def _repr_html_(self) -> str:
        heads, rows, total = self._table()
        if not rows:
            return f"<p>{escape(self._title())}</p><p>nothing is sent: {self._why_nothing}</p>"
        head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return (
            f"<table><caption>{escape(self._title())}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{escape(total)}</p>"
        )

    @property
    def _why_nothing(self) -> str:
        return _ALONE if self.plan else "every rank has all that a forward pass needs"

    def _title(self) -> str:
        groups = f" in shard groups of {self.shard_size}" if self.strategy == "hsdp" else ""
        return (
            f"{self.strategy}, {float(self.parameters):,.0f} parameters, "
            f"{self.world_size} rank{'s' if self.world_size > 1 else ''}{groups} on "
            f"{self.nodes} node{'s' if self.nodes > 1 else ''}, {self.rules} rules: bytes sent in a step"
        )

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        """(headings, rows, the line below)."""
        heads = ("collective", "what for", "S", "ranks", "times", "sent by each rank")
        rows = [
            (c.kind, c.purpose, _size(c.total_bytes), str(c.group_size), str(c.times), _size(c.sent))
            for c in self.collectives
        ]
        node = f"{_size(self.inside)} inside, {_size(self.across)} across"
        return heads, rows, f"each rank sends {_size(self.per_rank)}; each node {node}"


def moved_as(kind: str, rules: str) -> str:
    """The ring's collective that moves as many bytes: gloo's reduce-scatter is an all-reduce of which each rank keeps
    its slice.
    """
    return "all_reduce" if rules == "gloo" and kind == "reduce_scatter" else kind


def leaving_shard_rings(node: int, on_node: int, group: int) -> int:
    """How many sends of shard rings leave a node: one for each group that is partly on it.

    node: its number. on_node: ranks on each node. group: ranks of a shard group, neighbours in rank order.
    """
    first, end = node * on_node, (node + 1) * on_node
    if first // group == (end - 1) // group:  # the whole node is inside one group
        return 0 if on_node == group else 1
    return (first % group > 0) + (end % group > 0)


def leaving_replica_rings(on_node: int, group: int, nodes: int) -> int:
    """The same for rings among replicas, which run through every `group`-th rank.

    A rank's next is on the same node only if it is `group` ranks further on and that is still there.
    """
    return min(on_node, group) if nodes > 1 else 0


def _size(total_bytes: float) -> str:
    return format_bytes(total_bytes, binary=False)
