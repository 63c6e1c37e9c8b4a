"""Numbers as other people's calculators print them, digit for digit."""

from __future__ import annotations

import math

from utils.theory.units import GiB


def gib(size: float, digits: int = 2) -> str:
    """How many GiB, with a fixed number of decimals."""
    return f"{size / GiB:.{digits}f}"


def by_thousands(number: float) -> str:
    """ "6.76 B" for 6.76e9: with two decimals at most, as EleutherAI's calculator writes numbers of parameters."""
    power = min(math.floor(math.log(number, 1000)), 6)
    return f"{round(number / math.pow(1000, power), 2)} {('', 'K', 'M', 'B', 'T', 'P', 'E')[power]}"


def by_1024(size: float) -> str:
    """ "413.18 MB" for 413.18 MiB: steps of 1024 under decimal names, with two decimals at most, as accelerate does."""
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1024:
            return f"{round(size, 2)} {unit}"
        size /= 1024
    return f"{round(size, 2)} PB"
