"""The check's own laws are shut while an answer runs: an answer that asks them would be compared with itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_answering = False


class AsksTheCheck(RuntimeError):
    """An answer called what it is judged by."""


def shut_to_answers(law: Function) -> Function:
    """The same law, which raises AsksTheCheck while `answers_to` runs an answer."""

    @functools.wraps(law)
    def guarded(*arguments: Any, **named: Any) -> Any:
        if _answering:
            raise AsksTheCheck(
                f"`{law.__name__}` is what this check compares with, so that it would agree with itself; write what "
                "the card says, with utils.theory where you like"
            )
        return law(*arguments, **named)

    del guarded.__wrapped__  # the law itself is nobody's to call meanwhile
    return guarded  # type: ignore[return-value]


def answers_to(questions: Iterable[tuple[Any, ...]], answer: Callable[..., Any]) -> list[Any]:
    """What the answer returns for each question's arguments. Raises AsksTheCheck if it asks the check's own laws."""
    global _answering
    _answering = True
    try:
        return [answer(*each) for each in questions]
    finally:
        _answering = False
