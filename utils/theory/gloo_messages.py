"""A step's collectives as the messages that gloo sends, in the order in which they queue on a rank's link.

An all-gather is a ring of 2 (N - 1) messages, two of them on their way at a time: each of the others sets out when the
one before the last has arrived. A reduce-scatter, that of `utils.runtime.true_reduce_scatter`, hands all it sends to
the link at once. So a gather that has begun waits again for each reduce-scatter that comes in between.

A message is sent when the other side has said that it is ready to receive it. Of two ranks all goes over one
connection, and one rank comes later to a collective. It finds that the other is ready, and sends; what itself is ready
for, gloo's gather says after that, on the same connection, behind what it has sent. So the other one's message sets out
when the later one's has arrived, and a gather takes half as long again as its bytes. All this is the later rank's
clock. A reduce-scatter says first what it is ready for, and its two directions go at once, unless something else is
still on its way out.

Sources: pytorch/gloo, gloo/allgather.cc (two chunks of each part, `send` before `recv`), gloo/transport/tcp/pair.cc (a
send waits for the other side's notification).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from utils.theory.events import Task, Transfer
from utils.theory.sharing import Link

OUT, BACK = "link", "link, back"
CHUNKS = 2  # of a part in a gather


def as_messages(
    tasks: Sequence[Task], links: Mapping[str, Link], world_size: int
) -> tuple[Sequence[Task], Mapping[str, Link]]:
    """The tasks with gathers and reduce-scatters on `OUT` cut into messages, and the links of these.

    tasks: as `step_tasks.tasks_of` gives them. With two ranks, those of the later one, what it receives on `BACK`.
    Both are unchanged unless the link is one `by_messages`. A collective has its name's end when its last message is
    through. All-reduces are left as they are: gloo's says first what it is ready for.
    """
    link = links.get(OUT)
    if link is None or not link.by_messages or world_size < 2:
        return tasks, links
    queue = replace(link, concurrency=1, by_turns=False)
    split = [part for task in tasks for part in _messages(task, world_size)]
    return split, {**links, OUT: queue, BACK: queue} if world_size == 2 else {**links, OUT: queue}


def _messages(task: Task, world_size: int) -> list[Transfer] | list[Task]:
    if not isinstance(task, Transfer) or task.link != OUT:
        return [task]
    if task.name.startswith("all_gather"):
        return _there_and_back(task) if world_size == 2 else _ring(task, CHUNKS * (world_size - 1))
    if task.name.startswith("reduce_scatter") and world_size == 2:
        return _both_ways(task)
    return [task]


def _ring(task: Transfer, count: int) -> list[Transfer]:
    """Messages of a ring: those of one step of it are on their way together."""
    names = [f"{task.name}, message {number}" for number in range(count - 1)] + [task.name]
    return [
        replace(
            task,
            name=name,
            bytes=task.bytes / count,
            after=task.after if number < CHUNKS else (names[number - CHUNKS],),
            steps=1 if number % CHUNKS == 0 else 0,
        )
        for number, name in enumerate(names)
    ]


def _there_and_back(task: Transfer) -> list[Transfer]:
    """A gather of two: each chunk is received when it was sent."""
    parts = []
    for chunk in range(CHUNKS):
        sent, received = f"{task.name}, chunk {chunk} sent", f"{task.name}, chunk {chunk} received"
        size, name = task.bytes / CHUNKS, task.name if chunk == CHUNKS - 1 else received
        parts.append(replace(task, name=sent, bytes=size, steps=task.steps if chunk == 0 else 0))
        parts.append(replace(task, name=name, bytes=size, after=(sent,), link=BACK, steps=0))
    return parts


def _both_ways(task: Transfer) -> list[Transfer]:
    """A reduce-scatter of two: first the word that it is ready, of no bytes; then both directions."""
    ready, sent = f"{task.name}, ready", f"{task.name}, sent"
    return [
        replace(task, name=ready, bytes=0),
        replace(task, name=sent, steps=0),
        replace(task, after=(ready,), link=BACK, steps=0),
    ]
