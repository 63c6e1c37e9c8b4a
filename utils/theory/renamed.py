"""A time line whose events have other names: what was measured knows numbers alone, and a reader wants units."""

from __future__ import annotations

from collections.abc import Mapping

from utils.theory.events import Timeline


def renamed(timeline: Timeline, names: Mapping[str, str]) -> Timeline:
    """The same events, such as "compute 3", under new names, such as "forward 3".

    Raises ValueError for a name that no event has; events without a new name keep theirs.
    """
    known = {event.name for event in timeline.events}
    if unknown := sorted(set(names) - known):
        raise ValueError(f"no event is named {unknown[0]!r}; the events are {', '.join(sorted(known)) or 'none'}")
    return Timeline(tuple(event._replace(name=names.get(event.name, event.name)) for event in timeline.events))
