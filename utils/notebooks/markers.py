"""Solution regions: the lines of a cell that students do not get.

A region stands between the two marker lines of nbgrader. A marker that is misspelt, missing or in the wrong place would
give the solution away, so everything that looks like a marker and is not one is refused.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
STUB = 'raise NotImplementedError("your answer here")'

# What an author may have meant as a marker: capitals anywhere in a line, or a comment of that wording.
_MEANT = re.compile(r"(BEGIN|END)[ _-]*SOLUTIONS?\b|^\s*#+\s*(?i:(begin|end)[ _-]*solutions?\b)|^\s*###.*(?i:solution)")


class MarkerError(ValueError):
    """The markers of a cell cannot be trusted. The message says which line, and what to do."""


@dataclass(frozen=True)
class Region:
    """Lines `begin` to `end` of a cell, markers included, counted from 0."""

    begin: int
    end: int
    indentation: str


def looks_like_marker(line: str) -> bool:
    """True for a marker and for everything that may have been meant as one; not for prose about solutions."""
    return _MEANT.search(line) is not None


def regions(source: str) -> list[Region]:
    """The solution regions of a code cell, in order. Raises MarkerError if they are malformed."""
    found: list[Region] = []
    begin: int | None = None
    lines = source.splitlines()
    for number, line in enumerate(lines):
        text = line.strip()
        if text == BEGIN:
            if begin is not None:
                raise MarkerError(f"line {number + 1} opens a second region inside the first; close that with `{END}`")
            begin = number
        elif text == END:
            if begin is None:
                raise MarkerError(f"line {number + 1} closes a region that no `{BEGIN}` opened")
            if not any(inner.strip() for inner in lines[begin + 1 : number]):
                raise MarkerError(f"the region in lines {begin + 1} to {number + 1} is empty")
            found.append(Region(begin, number, re.match(r"\s*", lines[begin]).group()))
            begin = None
        elif looks_like_marker(line):
            raise MarkerError(f"line {number + 1} reads `{text}`; a marker is exactly `{BEGIN}` or `{END}`")
    if begin is not None:
        raise MarkerError(f"line {begin + 1} opens a region that no `{END}` closes")
    return found


def without_solution(source: str) -> str:
    """The cell as students get it: each region replaced by one line that raises NotImplementedError.

    Args:
        source: A code cell. Without a region it is returned as it is.

    Returns:
        The cell's source; signatures and docstrings outside the regions are kept.
    """
    here = regions(source)
    if not here:
        return source
    lines = source.splitlines()
    for region in reversed(here):
        lines[region.begin : region.end + 1] = [region.indentation + STUB]
    stripped = "\n".join(lines)
    try:
        ast.parse(stripped)
    except SyntaxError as error:
        raise MarkerError(
            f"without its solution the cell is no valid Python (line {error.lineno}: {error.msg}); indent `{BEGIN}` "
            "like the lines that it replaces"
        ) from None
    return stripped


def solution_texts(source: str) -> list[str]:
    """For each region the text between its markers."""
    lines = source.splitlines()
    return ["\n".join(lines[region.begin + 1 : region.end]) for region in regions(source)]
