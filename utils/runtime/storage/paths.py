"""Where something lies: a path that is given as a text or as a Path, and a sentence for whatever else is given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from utils.theory.arguments import shown


def path_of(name: str, value: object, meaning: str) -> Path:
    """The path. Raises ValueError unless `value` is a text that is not empty, or a path."""
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a path, such as Path(folder) / 'name'")
    return Path(value)


def paths_of(name: str, value: object, meaning: str) -> tuple[Path, ...]:
    """The paths. Raises ValueError unless `value` is a list or a tuple of paths."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a list or a tuple of paths")
    return tuple(path_of(f"{name}[{number}]", each, "one of them") for number, each in enumerate(value))
