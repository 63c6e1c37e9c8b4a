"""Checks of arguments that several laws share: each refuses in one sentence that names the value and what to do.

Numbers have bounds so wide that no figure that occurs lies outside, and so narrow that no product or quotient of
several leaves the range of a float, and that no table of all ranks fills the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from numbers import Integral, Real

from utils.theory.units import as_float, shown

LEAST, MOST = 1e-30, 1e30  # of an amount above 0
MOST_WHOLE = 10**18
MOST_RANKS = 10**6


def is_whole(number: object) -> bool:
    """Whether `number` is an integer; numpy's are, True and 4.0 are not."""
    return type(number) is int or (isinstance(number, Integral) and not isinstance(number, bool))


def check_whole(name: str, value: object, meaning: str, least: int = 1, most: int = MOST_WHOLE) -> None:
    """Raise ValueError unless `value` is a whole number of at least `least` and at most `most`."""
    if type(value) is int and least <= value <= most:
        return  # asked 100,000 times in a search
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a whole number of at least {least}")
    if value > most:
        raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a whole number of at most {most:,}")


def check_ranks(name: str, value: object, meaning: str = "a number of ranks", least: int = 1) -> None:
    """`check_whole` of a number of ranks, or of GPUs, with its bound."""
    check_whole(name, value, meaning, least, MOST_RANKS)


def check_amount(name: str, value: object, meaning: str, example: str, least: float | None = None) -> None:
    """Raise ValueError unless `value` is a finite number above 0, or of at least `least` where one is given.

    Above `MOST` it is refused too, and below `LEAST` where it has to be above 0, since it may divide another.
    """
    kind = type(value)
    if (kind is float or kind is int) and (LEAST if least is None else least) <= value <= MOST:
        return  # asked 100,000 times in a search
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    value = as_float(value) if is_number and kind.__module__ == "numpy" else value  # 16 bit overflow at the bounds
    if is_number and (LEAST if least is None else least) <= value <= MOST:
        return
    if is_number and MOST < value < math.inf:
        bound = f"of at most {MOST:g}"
    elif is_number and least is None and 0 < value < LEAST:
        bound = f"of at least {LEAST:g}"
    else:
        bound = "above 0" if least is None else f"of at least {least}"
    raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a finite number {bound}, {example}")


def check_share(name: str, value: object, of: str = "the memory") -> None:
    """Raise ValueError unless `value` is a number from 0 to below 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= as_float(value) < 1:
        raise ValueError(f"{name} is {shown(value)}; it is a share of {of}: give a number from 0 to below 1")


def check_divisor(name: str, value: object, whole: int, of: str, why: str) -> None:
    """Raise ValueError unless `value` is a whole number of at least 1 that divides `whole`, which is called `of`."""
    if not is_whole(value) or value < 1 or whole % value:
        raise ValueError(
            f"{name} is {shown(value)}; {why}: give a whole number of at least 1 that divides {of} = {whole}"
        )


def check_yes_or_no(name: str, value: object) -> None:
    """Raise ValueError unless `value` is True or False."""
    if value is not True and value is not False:
        raise ValueError(f"{name} is {shown(value)}; it is yes or no: give True or False")


def check_text(name: str, value: object, meaning: str) -> None:
    """Raise ValueError unless `value` is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is {shown(value)}; it is {meaning}: give a text")


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Raise ValueError, with the nearest of the `known` names, unless `value` is one of them."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(unknown(name, value, tuple(known)))


def check_one_of(name: str, value: object, allowed: tuple[int, ...]) -> None:
    """Raise ValueError unless `value` is one of a few whole numbers."""
    if not is_whole(value) or value not in allowed:
        given = [str(each) for each in allowed]
        first = f"one of {', '.join(given)}" if len(given) > 2 else " or ".join(given)
        raise ValueError(f"{name} is {shown(value)}; give {first}")


def check_names(name: object, after: object) -> None:
    """Raise ValueError unless they are a task's name, and the names of what it comes after."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"name is {shown(name)}; give a task a name, such as 'backward 3'")
    if not isinstance(after, tuple | list) or not all(isinstance(each, str) for each in after):
        raise ValueError(f"after of {name!r} is {shown(after)}; give a tuple of names, such as ('backward 3',)")


def is_time(value: object) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(as_float(value))


def check_all(name: str, values: object, kind: type, example: str) -> tuple:
    """`values` as a tuple, each of the class `kind`; ValueError if one is not, or if they are no list of things."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        try:
            found = tuple(values)
        except TypeError:  # numpy's and torch's scalars
            found = (values,)
        if all(isinstance(each, kind) for each in found):
            return found
    raise ValueError(f"{name} is {shown(values)}; give a list of {kind.__name__}, {example}")


def unknown(what: str, given: object, known: tuple[str, ...], hint: str = "") -> str:
    """The sentence for a name that is not among the `known` ones, with the nearest of them, or else with `hint`."""
    near = " or ".join(map(repr, nearest(given, known)))
    otherwise = hint or f"choose one of {', '.join(known)}"
    return f"{what} is {shown(given)}, which is not known here; {f'did you mean {near}?' if near else otherwise}"


def nearest(given: object, known: Iterable[str], count: int = 2) -> list[str]:
    """The known names that are most like the one given, none if none is; letters alone count, large or small."""
    from difflib import get_close_matches  # for errors alone

    if not isinstance(given, str):
        return []
    names = {_letters(name): name for name in known}
    given = _letters(given)
    if given in names:
        return [names[given]]
    return [names[near] for near in get_close_matches(given, names, n=count, cutoff=0.55)]


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9.]", "", name.lower())
