"""What two ranks do on one connection under gloo, where a rank sends first and says then what it is ready to receive.

A message is sent when the other side has said that it is ready. Of two ranks one comes later to a collective. It finds
that the other is ready, and sends; what itself is ready for, it says on the same connection, behind what it has sent.
So the other one's message sets out only when the later one's has arrived, and a gather takes longer than its bytes:
gloo cuts it into two messages, and it takes one and a half times as long. All this is the later rank's clock.

A reduce-scatter is that of `utils.runtime.true_reduce_scatter`: it says first what it is ready for, and its two
directions go at once, unless something else is still on its way out.

Sources: pytorch/gloo, gloo/allgather.cc (two chunks, `send` before `recv`), gloo/transport/tcp/pair.cc (a send waits
for the other side's notification).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from utils.theory.events import Task, Transfer
from utils.theory.sharing import Link

OUT, BACK = "link", "link, back"
CHUNKS = 2  # of a gather


def on_one_connection(
    tasks: Sequence[Task], links: Mapping[str, Link], world_size: int
) -> tuple[Sequence[Task], Mapping[str, Link]]:
    """The tasks of the later one of two ranks, its sends on `OUT` and its receives on `BACK`; the links of these.

    tasks: as `step_tasks.tasks_of` gives them. Unchanged, and so are the links, unless there are two ranks and the link
    is of that kind. A collective is over when it has received; its name is the last receive's.
    """
    link = links.get(OUT)
    if link is None or not link.one_connection or world_size != 2:
        return tasks, links
    one_way = replace(link, concurrency=1, by_turns=False)
    split = [part for task in tasks for part in _parts(task)]
    return split, {**links, OUT: one_way, BACK: one_way}


def _parts(task: Task) -> list[Task]:
    if not isinstance(task, Transfer) or task.link != OUT:
        return [task]
    if task.name.startswith("all_gather"):
        return _gather(task)
    return _scatter(task) if task.name.startswith("reduce_scatter") else [task]


def _gather(task: Transfer) -> list[Task]:
    """Each chunk is received when it was sent."""
    parts: list[Task] = []
    for chunk in range(CHUNKS):
        last = chunk == CHUNKS - 1
        sent = f"{task.name}, chunk {chunk} sent"
        parts.append(replace(task, name=sent, bytes=task.bytes / CHUNKS, steps=task.steps if chunk == 0 else 0))
        received = task.name if last else f"{task.name}, chunk {chunk} received"
        parts.append(replace(task, name=received, bytes=task.bytes / CHUNKS, after=(sent,), link=BACK, steps=0))
    return parts


def _scatter(task: Transfer) -> list[Task]:
    """First the word that it is ready, of no bytes; then both directions."""
    ready, sent = f"{task.name}, ready", f"{task.name}, sent"
    return [
        replace(task, name=ready, bytes=0),
        replace(task, name=sent, steps=0),
        replace(task, after=(ready,), link=BACK, steps=0),
    ]
