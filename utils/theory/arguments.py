"""Checks of arguments that several laws share: each refuses in one sentence that names the value and what to do."""

from __future__ import annotations

import math
from difflib import get_close_matches
from numbers import Integral, Real

from utils.theory.units import as_float, shown


def is_whole(number: object) -> bool:
    """Whether `number` is an integer; numpy's are, True and 4.0 are not."""
    return type(number) is int or (isinstance(number, Integral) and not isinstance(number, bool))


def check_whole(name: str, value: object, meaning: str, least: int = 1) -> None:
    """Raise ValueError unless `value` is a whole number of at least `least`."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a whole number of at least {least}")


def check_amount(name: str, value: object, meaning: str, example: str, least: float | None = None) -> None:
    """Raise ValueError unless `value` is a finite number above 0, or of at least `least` where one is given."""
    is_number = type(value) in (int, float) or (isinstance(value, Real) and not isinstance(value, bool))
    if not is_number or not (value > 0 if least is None else value >= least) or not as_float(value) < math.inf:
        bound = "above 0" if least is None else f"of at least {least}"
        raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a finite number {bound}, {example}")


def check_yes_or_no(name: str, value: object) -> None:
    """Raise ValueError unless `value` is True or False."""
    if value is not True and value is not False:
        raise ValueError(f"{name} is {shown(value)}; it is yes or no: give True or False")


def unknown(what: str, given: object, known: tuple[str, ...]) -> str:
    """The sentence for a name that is not among the `known` ones, with the nearest of them."""
    near = get_close_matches(given.lower(), known, n=2, cutoff=0.5) if isinstance(given, str) else []
    hint = f"did you mean {' or '.join(repr(k) for k in near)}?" if near else f"choose one of {', '.join(known)}"
    return f"{what} is {shown(given)}, which is not known here; {hint}"
