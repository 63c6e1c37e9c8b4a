"""Which link each collective of a step goes over when ranks share nodes, and with how many bytes.

A node's ranks share one link to the other nodes. A ring through several nodes puts the bytes of one of its edges on
that link for each time it leaves the node, and lasts as long as its slowest edge takes: one inside, at a rank's rate
there, or the node's link with all that leaves. HSDP's rings among replicas all leave: G of them, each with S / G.
Rings that follow the order of ranks, as in `traffic.step_traffic`; no hierarchical algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from utils.theory.events import Task, Transfer
from utils.theory.sharing import Link
from utils.theory.traffic.step import leaving_most
from utils.theory.traffic.step_traffic import leaving_replica_rings

INSIDE, ACROSS = "link", "across"


def on_nodes(tasks: Sequence[Task], links: Mapping[str, Link], ranks: int, shard_size: int, nodes: int) -> list[Task]:
    """The tasks of a step on `ranks` ranks, on `nodes` nodes, each transfer on the link that makes it last.

    tasks: as `step_tasks.tasks_of` gives them, with the bytes that one rank sends: on `INSIDE` those of rings of
    `shard_size` neighbours (all ranks without shard groups), on `ACROSS` those among replicas. links: both names; the
    rate of `ACROSS` is a node's, of `INSIDE` a rank's.
    """
    on_node = ranks // nodes
    leaving = {
        INSIDE: leaving_most(on_node, shard_size, nodes),
        ACROSS: leaving_replica_rings(on_node, shard_size, nodes),
    }
    return [_placed(task, links, leaving[task.link], on_node) if isinstance(task, Transfer) else task for task in tasks]


def _placed(task: Transfer, links: Mapping[str, Link], leaving: int, on_node: int) -> Transfer:
    """leaving: how many sends of such rings leave the busiest node at a time."""
    size, slower_inside = leaving * task.bytes, not leaving
    if 0 < leaving < on_node:  # some edges inside, some across
        slower_inside = links[INSIDE].alone(task.bytes, task.steps) > links[ACROSS].alone(size, task.steps)
    if slower_inside:
        return task if task.link == INSIDE else replace(task, link=INSIDE)
    return replace(task, link=ACROSS, bytes=size)
