"""What a check says: not begun, mistake or passed, with a sentence and three folded hints.

Inside a check the two other outcomes travel as exceptions: `raise Mistake("the gradients are summed, not averaged")`
ends it with that diagnosis, `raise NotBegun("...")` with the word that the learner has not started yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Literal

from utils.checks.drawing import BAD, GOOD, NEUTRAL, html_box

State = Literal["not begun", "mistake", "passed"]
_COLOUR_OF: dict[State, str] = {"not begun": NEUTRAL, "mistake": BAD, "passed": GOOD}


class Mistake(Exception):
    """The answer is wrong in a way that the message names, in a sentence for the learner."""


class NotBegun(Exception):
    """There is no answer to judge yet; the message says what to write."""


@dataclass(frozen=True)
class Verdict:
    """The result of one check. Its text is a function of the answer alone: no times, no paths, rounded numbers."""

    state: State
    exercise_id: str
    message: str
    hints: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    def __repr__(self) -> str:
        return f"{self.state} · {self.exercise_id}: {self.message}"

    def _repr_html_(self) -> str:
        head = f"<b>{self.state}</b> · <code>{escape(self.exercise_id)}</code><br>{html_text(self.message)}"
        return html_box(_COLOUR_OF[self.state], head + _folded(self.hints, 1))


def with_article(noun: str) -> str:
    """Such as "an int" or "a list"."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _folded(hints: tuple[str, ...], number: int) -> str:
    """Each hint folded inside the one before it, so that the second can be opened only after the first was read."""
    if not hints:
        return ""
    inner = f"<p>{html_text(hints[0])}</p>{_folded(hints[1:], number + 1)}"
    return f"<details><summary>Hint {number}</summary>{inner}</details>"


def html_text(text: str) -> str:
    """Plain text as HTML: `code` between backticks in <code>, line breaks kept."""
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return coded.replace("\n", "<br>")
