"""What the peers' calculators share: their arguments, checked, and terms that go by the number of parameters."""

from __future__ import annotations

from utils.theory.arguments import check_amount, check_ranks, check_whole, check_yes_or_no
from utils.theory.units import plain

GIB_CALLED_GB = "it divides by 2^30 and writes GB"


def count(name: str, value: int, least: int = 1) -> int:
    """`value` as Python's own int, after its check."""
    check_whole(name, value, "a count", least)
    return int(value)


def group(name: str, value: int) -> int:
    """A number of ranks or GPUs, after its check."""
    check_ranks(name, value, "a count")
    return int(value)


def flags(**given: bool) -> None:
    """Raise ValueError for the first that is neither True nor False."""
    for name, value in given.items():
        check_yes_or_no(name, value)


def amount(name: str, value: float, least: float | None = None) -> float:
    """`value` as Python's own number, after its check."""
    check_amount(name, value, "an amount", "such as 1.5 or 7e9", least)
    return plain(value)


def state(name: str, each: float, parameters: float, ranks: int = 1) -> tuple[str, float, float, int]:
    """A term of `each` bytes per parameter, shared out among `ranks`."""
    return name, each * parameters / ranks, each, ranks
