"""The answers of one lab, loaded.

A function that says `lab.all_reduce_ring` takes this object along to its ranks, and each of them imports this module
to read it: so it imports nothing that reads notebooks, which would take each rank more than a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answers:
    """The answers of one lab. `answers.average_gradients` is the function of that name."""

    lab: str
    names: Mapping[str, Any]
    borrowed: tuple[str, ...]  # exercises whose answer came from the solution because the lab's was not begun

    def __getattr__(self, name: str) -> Any:
        names = self.__dict__.get("names")
        if names is None:  # pickle asks before there are any
            raise AttributeError(name)
        if name not in names:
            raise AttributeError(f"The answers of lab {self.lab} define no {name!r}; they define {', '.join(names)}.")
        return names[name]
