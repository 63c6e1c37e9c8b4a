"""Numbers as answers: read, compared with the law, and beside the laws that somebody may have followed instead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

from utils.checks.verdict import with_article

Numbers = tuple[float, ...]


def numbers_of(returned: Any, count: int) -> Numbers | str:
    """`count` finite numbers; else, in words, what was returned."""
    if returned is None:
        return "nothing"
    if isinstance(returned, str | bytes | Mapping | Set) or not hasattr(returned, "__iter__"):
        return with_article(type(returned).__name__)
    values = tuple(returned)
    if len(values) != count:
        return f"{len(values)} value{'' if len(values) == 1 else 's'}"
    if any(isinstance(each, str | bytes) for each in values):  # float("1") is no complaint
        return f"the values {values!r}"[:80]
    try:
        plain = tuple(float(each) for each in values)
    except (TypeError, ValueError):
        return f"the values {values!r}"[:80]
    return plain if all(map(math.isfinite, plain)) else f"the values {values!r}"[:80]


def near(got: float, wanted: float, within: float) -> bool:
    """Within that share of what is wanted."""
    return abs(got - wanted) <= within * abs(wanted)
