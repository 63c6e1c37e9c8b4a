"""What several checks of numbers share: reading what an answer returned."""

from __future__ import annotations

import math
from typing import Any

from utils.checks.prediction import NotANumber, NotUsable, number


def apart(got: float, wanted: float) -> tuple[str, str]:
    """Both in words, with as many digits as tell them apart, at least four."""
    for digits in range(4, 18):
        pair = f"{got:.{digits}g}", f"{wanted:.{digits}g}"
        if pair[0] != pair[1]:
            break
    return pair


def pair_of(returned: Any) -> tuple[float, float] | str:
    """Two finite numbers; else, in words, what was returned instead."""
    if returned is None:
        return "None"
    try:
        values = tuple(returned)
    except TypeError:
        return f"a {type(returned).__name__}"
    if len(values) != 2:
        return f"{len(values)} value{'s' * (len(values) != 1)}"
    try:
        pair = tuple(number(value, "it") for value in values)
    except (NotANumber, NotUsable):
        return f"the pair {values!r}"[:80]
    return f"the pair {values!r}" if None in pair or not all(map(math.isfinite, pair)) else pair
