"""Numbers as answers, and the rules that lead to them: a wrong rule is named if it gives exactly what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from utils.checks.prediction import NotANumber, NotUsable, number
from utils.checks.verdict import Mistake, with_article

WITHIN = 1e-4  # of the right number: what rounding may do, and shards that are padded to whole numbers


def near(got: float, wanted: float) -> bool:
    """Whether both are the same number."""
    return abs(got - wanted) <= WITHIN * max(abs(wanted), 1e-12)


def alike(got: Sequence[float], wanted: Sequence[float]) -> bool:
    """Whether they are the same numbers, one by one."""
    return len(got) == len(wanted) and all(near(a, b) for a, b in zip(got, wanted, strict=True))


def plain_number(returned: Any, what: str, positive: str = "", not_negative: str = "") -> float:
    """The number that was returned. Raises Mistake for something else; `what` is asked for, such as "bytes".

    positive, not_negative: why a number that is not is none, such as "a step takes more than 0 seconds".
    """
    if returned is None:
        raise Mistake(f"your function returns nothing; return {what}.")
    try:
        found = float(number(returned, "it"))  # type: ignore[arg-type]
    except (NotANumber, NotUsable):
        raise Mistake(f"your function returns {shown(returned)}; return {what}, one number.") from None
    if (positive and found <= 0) or found < 0:
        raise Mistake(f"your function returns {found:g}; {positive or not_negative}.")
    return found


def apart(found: float, wanted: float) -> tuple[str, str]:
    """Both numbers, with as many digits as it takes to tell them apart, four at least."""
    for digits in range(4, 17):
        words = f"{found:.{digits}g}", f"{wanted:.{digits}g}"
        if words[0] != words[1]:
            break
    return words


def listed(returned: Any) -> Any:
    """An array or a tensor as a list, all else as it is."""
    return returned.tolist() if callable(getattr(returned, "tolist", None)) else returned


def shown(returned: Any) -> str:
    """What was returned, in a few words."""
    if isinstance(returned, str | float | int | tuple | list) and len(repr(returned)) <= 60:
        return repr(returned)
    return with_article(type(returned).__name__)


def raise_named(got: Sequence[float], wrong: Sequence[tuple[Sequence[float], str]]) -> None:
    """Raise Mistake with the words of the first wrong rule whose numbers these are."""
    for numbers, words in wrong:
        if alike(got, numbers):
            raise Mistake(words)
