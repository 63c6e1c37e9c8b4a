"""Finds the text of a solution in what a student gets, however it is written there.

Both are compared as sequences of tokens: spacing, comment signs, bullets, backticks and tags do not count. What the
lab gives may share expressions and single lines with a solution; more than that gives it away.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

RUN = 12  # so many tokens in a row, from more than one line
LONG_LINE = 10  # a line of so many tokens is guarded by itself,
LARGE_PART = 1 / 5  # if it is so much of its solution
LEAST_CHARACTERS = 20  # less than that can stand anywhere by chance
LEAST_SHARE = 2 / 3  # of a solution's lines, scattered over one cell

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LEAD = re.compile(r"^(?:\s|#|>|\||[-*+]\s|\d+[.)]\s)+")
_TAG = re.compile(r"</?(?:code|pre|b|i|em|strong|br|p|li|[uo]l|span|div|details|summary|t[rdh]|table)\b[^>]*>")


def leaked(solution: str, given: str) -> str:
    """What `given`, the text of a cell that students get, tells of the code `solution`; empty if that is not enough."""
    lines = [tokens for tokens in map(_tokens, _without_comments(solution.splitlines())) if tokens]
    texts = [f" {' '.join(_tokens(view))} " for view in _views(given)]

    def told(tokens: list[str]) -> bool:
        return any(f" {' '.join(tokens)} " in text for text in texts)

    everything = [token for line in lines for token in line]
    if len("".join(everything)) < LEAST_CHARACTERS:
        return ""
    if (len(lines) == 1 or len(everything) < RUN) and told(everything):
        return _shown(everything)
    for line in lines:
        if len(line) >= max(LONG_LINE, LARGE_PART * len(everything)) and told(line):
            return _shown(line)
    line_of = [number for number, line in enumerate(lines) for _ in line]
    for start in range(len(everything) - RUN + 1):
        if line_of[start] < line_of[start + RUN - 1] and told(everything[start : start + RUN]):
            return _shown(everything[start : start + RUN])
    scattered = [line for line in lines if told(line)]
    if len(lines) > 1 and len(scattered) >= LEAST_SHARE * len(lines):
        return _shown([token for line in scattered for token in line])
    return ""


def _views(text: str) -> list[str]:
    """The ways to read a text: as prose, as code, as the comments of code; with and without comments in a line."""
    lines = _TAG.sub(" ", html.unescape(text)).splitlines()
    bare = [_LEAD.sub("", line) for line in lines]
    in_comments = [line.partition("#")[2] for line in lines]
    return [
        "\n".join(view)
        for view in (
            bare,
            _without_comments(bare),
            _without_comments(lines),
            in_comments,
            _without_comments(_LEAD.sub("", line) for line in in_comments),
            _without_comments(_LEAD.sub("", line) for line in lines if line.lstrip().startswith("#")),
        )
    ]


def _without_comments(lines: Iterable[str]) -> list[str]:
    return [line.partition("#")[0] for line in lines]


def _tokens(text: str) -> list[str]:
    """The tokens of a line or a text, without what only marks it as code or escapes a character."""
    return _TOKEN.findall("\n".join(_LEAD.sub("", line) for line in re.sub(r"[`\\]", "", text).splitlines()))


def _shown(tokens: list[str]) -> str:
    return " ".join(tokens)[:80]
