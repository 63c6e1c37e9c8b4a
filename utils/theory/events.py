"""Compute and communication with dependencies, event by event: what happens when, and how long the whole takes.

timeline = simulate(
    [
        Compute("backward 1", 0.020),
        Transfer("all_reduce 1", 4 * MB, after=("backward 1",)),
        Compute("backward 0", 0.020),
        Transfer("all_reduce 0", 4 * MB, after=("backward 0",)),
    ],
    {"link": Link(125 * MB)},
)
timeline.seconds, timeline.exposed

Computations of one lane run one after the other in the order given, as on a GPU's stream. A transfer is issued when
all that it comes after is done, and its link serves it then or makes it wait (`utils.theory.sharing`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from utils.theory.arguments import check_all, check_amount, check_names, check_text, check_whole, is_time
from utils.theory.sharing import Link, Server
from utils.theory.units import plain, shown


@dataclass(frozen=True)
class Compute:
    """Work of `seconds` on a lane, begun when the lane is free and all of `after` (names of tasks) is done."""

    name: str
    seconds: float
    after: tuple[str, ...] = ()
    lane: str = "compute"

    def __post_init__(self) -> None:
        check_names(self.name, self.after)
        check_amount(f"seconds of {self.name!r}", self.seconds, "a duration", "such as 0.010", least=0)
        check_text("lane", self.lane, "the name of a lane")


@dataclass(frozen=True)
class Transfer:
    """`bytes` that a rank sends over the link named `link`, issued when all of `after` (names of tasks) is done.

    steps: how often the link's latency is paid. pieces: into how many it is cut, where a link is shared by turns.
    """

    name: str
    bytes: float
    after: tuple[str, ...] = ()
    link: str = "link"
    steps: int = 1
    pieces: int = 1

    def __post_init__(self) -> None:
        check_names(self.name, self.after)
        check_amount(f"bytes of {self.name!r}", self.bytes, "a size", "such as 4 * MiB", least=0)
        check_whole(f"steps of {self.name!r}", self.steps, "how often the latency is paid", least=0)
        check_whole(f"pieces of {self.name!r}", self.pieces, "into how many it is cut")
        check_text("link", self.link, "the name of a link")


Task = Compute | Transfer


class Event(NamedTuple):
    """What one task did, in seconds since the beginning.

    lane: of a transfer, the link. kind: "compute" or "communication". issued: when all before it was done.
    start: when it was begun; a transfer waits for its link from `issued` to `start`.
    """

    name: str
    lane: str
    kind: str
    issued: float
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """All events, in the order of their start. Draws itself in a notebook."""

    events: tuple[Event, ...]

    @property
    def seconds(self) -> float:
        """From the beginning to the end of the last event; 0 without events."""
        return max((event.end for event in self.events), default=0.0)

    @property
    def exposed_spans(self) -> tuple[tuple[float, float], ...]:
        """When no lane computed: everything waited for communication."""
        spans, until = [], 0.0
        for event in self.events:
            if event.kind == "compute" and event.end > event.start:
                if event.start > until:
                    spans.append((until, event.start))
                until = max(until, event.end)
        last = self.seconds
        return (*spans, (until, last)) if last > until else tuple(spans)

    @property
    def exposed(self) -> float:
        """Seconds in which everything waited for communication."""
        return math.fsum(end - start for start, end in self.exposed_spans)

    def __getitem__(self, name: str) -> Event:
        for event in self.events:
            if event.name == name:
                return event
        raise KeyError(f"no event named {name}")

    def __repr__(self) -> str:
        return f"Timeline({len(self.events)} events, {1e3 * self.seconds:.1f} ms, exposed {1e3 * self.exposed:.1f} ms)"

    def picture(self, title: str = "") -> Any:
        """Lanes and links from top to bottom, time from left to right."""
        from utils.views.step_time import step_time_picture  # theory draws itself only when it is shown

        return step_time_picture(self, title)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.picture()._repr_mimebundle_(include, exclude)


def measured_timeline(
    operations: Sequence[Any], computed: Sequence[tuple[float, float]] = (), began: float | None = None
) -> Timeline:
    """What one rank really did in a step, in the form of a simulated one, to set the two side by side.

    operations: with `kind`, `issued_at` and `completed_at` in seconds, as a run's timeline has them, all completed.
    computed: begin and end of each computation by the same clock. began: when the step began; the first of all times if
    left out. Raises ValueError for an operation that never completed, or for times that run backwards.
    """
    try:
        named = [(f"{op.kind} {number}", op.issued_at, op.completed_at) for number, op in enumerate(operations)]
        spans = [(f"compute {number}", start, end) for number, (start, end) in enumerate(computed)]
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            f"operations are {shown(operations)}, computed is {shown(computed)}; give operations of a run's timeline, "
            "and pairs of a begin and an end"
        ) from None
    for name, start, end in named + spans:
        if not is_time(start) or not is_time(end) or not start <= end:
            raise ValueError(
                f"{name} runs from {shown(start)} to {shown(end)}; give finite times, and what was completed alone"
            )
    if began is not None and not is_time(began):
        raise ValueError(f"began is {shown(began)}; it is a time in seconds: give a finite number")
    zero = min((start for _, start, _ in named + spans), default=0.0) if began is None else began
    events = [
        Event(name, "link", "communication", start - zero, start - zero, end - zero) for name, start, end in named
    ]
    events += [Event(name, "compute", "compute", start - zero, start - zero, end - zero) for name, start, end in spans]
    return Timeline(tuple(sorted(events, key=lambda event: (event.start, event.end))))


def simulate(tasks: Sequence[Task], links: Mapping[str, Link] | None = None) -> Timeline:
    """Run the tasks: each as early as what it comes after, its lane or its link permits.

    tasks: computations in the order of their lane; of transfers issued at the same moment, the first one first.
    links: by name, as the transfers name them.
    Raises ValueError, in one sentence, for a name given twice or unknown, a link that is missing, tasks that wait for
    each other, and times too long to compute with.
    """
    links = {} if links is None else links
    if not isinstance(links, Mapping):
        raise ValueError(f"links is {shown(links)}; give a mapping of names to links, such as {{'link': Link(125e6)}}")
    tasks = check_all("tasks", tasks, object, "each a Compute or a Transfer")
    numbers = _numbered(tasks, links)
    waits = [0] * len(tasks)  # for how many tasks each one still waits
    followers: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        before = {numbers[name] for name in task.after}
        waits[number] = len(before)
        for other in before:
            followers[other].append(number)
    _check_duration(tasks, links)
    return _Simulation(tasks, links, waits, followers).run()


class _Simulation:
    def __init__(
        self, tasks: Sequence[Task], links: Mapping[str, Link], waits: list[int], followers: list[list[int]]
    ) -> None:
        self.tasks, self.waits, self.followers = tasks, waits, followers
        self.server_of = {name: Server(link) for name, link in links.items()}
        self.servers = tuple(self.server_of.values())
        lanes: dict[str, list[int]] = {}
        for number, task in enumerate(tasks):
            if isinstance(task, Compute):
                lanes.setdefault(task.lane, []).append(number)
        self.next_of = {lane: iter(queue) for lane, queue in lanes.items()}
        self.head = {lane: next(queue) for lane, queue in self.next_of.items()}  # None: nothing is left
        self.idle = set(lanes)
        self.ending: list[tuple[float, int]] = []  # computations under way, a heap by their end
        self.issued, self.start, self.end = ([math.nan] * len(tasks) for _ in range(3))

    def run(self) -> Timeline:
        now, left = 0.0, len(self.tasks)
        self._release([number for number, count in enumerate(self.waits) if not count], now)
        while left:
            now = self.ending[0][0] if self.ending else math.inf
            for server in self.servers:
                now = min(now, server.next_change())
            if now == math.inf:
                stuck = next(task.name for task, end in zip(self.tasks, self.end, strict=True) if end != end)
                raise ValueError(
                    f"task {stuck!r} never starts: it and others wait for each other; order them so that none comes "
                    "after itself, the tasks before it on its lane included"
                )
            done = self._finish(now)
            left -= len(done)
            ready = []
            for number in done:
                self.end[number] = now
                for follower in self.followers[number]:
                    self.waits[follower] -= 1
                    if not self.waits[follower]:
                        ready.append(follower)
            self._release(sorted(ready), now)
        return self._timeline()

    def _finish(self, now: float) -> list[int]:
        done = []
        while self.ending and self.ending[0][0] <= now:
            number = heapq.heappop(self.ending)[1]
            lane = self.tasks[number].lane
            self.head[lane] = next(self.next_of[lane], None)
            self.idle.add(lane)
            done.append(number)
        for server in self.servers:
            done += server.advance(now)
        return done

    def _release(self, ready: list[int], now: float) -> None:
        """Issue what is ready, and begin what lanes and links have room for."""
        for number in ready:
            self.issued[number] = now
            task = self.tasks[number]
            if isinstance(task, Transfer):
                self.server_of[task.link].issue(number, plain(task.bytes), int(task.steps), int(task.pieces))
        for server in self.servers:
            for number in server.admit(now):
                self.start[number] = now
        for lane in list(self.idle):
            number = self.head[lane]
            if number is not None and not self.waits[number]:
                self.idle.remove(lane)
                self.start[number] = now
                heapq.heappush(self.ending, (now + float(self.tasks[number].seconds), number))

    def _timeline(self) -> Timeline:
        order = sorted(range(len(self.tasks)), key=lambda number: (self.start[number], self.end[number], number))
        return Timeline(tuple(self._event(number) for number in order))

    def _event(self, number: int) -> Event:
        task = self.tasks[number]
        lane, kind = (task.lane, "compute") if isinstance(task, Compute) else (task.link, "communication")
        return Event(task.name, lane, kind, self.issued[number], self.start[number], self.end[number])


def _numbered(tasks: Sequence[Task], links: Mapping[str, Link]) -> dict[str, int]:
    """Number of each task by its name, after all names were checked."""
    numbers: dict[str, int] = {}
    for number, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise ValueError(f"task {number} is {shown(task)}; give a Compute or a Transfer")
        if task.name in numbers:
            raise ValueError(f"two tasks are named {task.name!r}; give each a name of its own")
        if isinstance(task, Transfer) and not isinstance(links.get(task.link), Link):
            known = ", ".join(map(repr, links)) or "none"
            raise ValueError(
                f"{task.name!r} goes over the link {task.link!r}, but the links are {known}: give a Link of that name"
            )
        numbers[task.name] = number
    for task in tasks:
        for name in task.after:
            if name not in numbers:
                raise ValueError(f"{task.name!r} comes after {name!r}, which is no task here; name one of the tasks")
    return numbers


def _check_duration(tasks: Sequence[Task], links: Mapping[str, Link]) -> None:
    longest = 0.0
    for task in tasks:
        longest += (
            task.seconds if isinstance(task, Compute) else links[task.link].alone(plain(task.bytes), int(task.steps))
        )
    if not longest < math.inf:
        raise ValueError("the tasks together take longer than a float can tell; give times and sizes as they occur")
