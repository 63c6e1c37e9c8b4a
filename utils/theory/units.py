"""Sizes in bytes, and how to write them out for a person.

GB is 10**9 bytes, GiB is 2**30; they lie 7.4% apart, so a number that a person reads always carries one of the two.
Inside the code sizes are plain bytes.
"""

from __future__ import annotations

import math
from numbers import Integral, Real

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KiB, MiB, GiB, TiB = 2**10, 2**20, 2**30, 2**40

_LINE = 100  # characters of a value in an error
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_DECIMAL = ("B", "kB", "MB", "GB", "TB")


def plain(number: Real) -> int | float:
    """The same number as Python's own, which does not overflow as NumPy's integers do."""
    if type(number) is int or type(number) is float:
        return number
    return int(number) if isinstance(number, Integral) else float(number)


def as_float(number: Real) -> float:
    """The number as a float; infinite if it is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def format_bytes(size: float, *, binary: bool = True, digits: int = 2) -> str:
    """Write a number of bytes with its unit: `format_bytes(48 * MiB)` is "48 MiB".

    Args:
        size: bytes; a negative size keeps its sign (a difference is a size too).
        binary: True for KiB, MiB, GiB, TiB (powers of two), False for kB, MB, GB, TB (powers of ten).
        digits: decimals kept, at most; zeros at the end are not written.

    The unit is the largest that fits, after rounding: 1023 bytes are "1023 B", and "1024 KiB" is never written.
    Raises ValueError when `size` is not a finite number, or `digits` no whole number from 0 to 12.
    """
    if isinstance(size, bool) or not isinstance(size, Real) or not math.isfinite(as_float(size)):
        raise ValueError(f"size is {shown(size)}; give a finite number of bytes, such as 4 * MiB")
    if isinstance(digits, bool) or not isinstance(digits, Integral) or not 0 <= digits <= 12:
        raise ValueError(f"digits is {shown(digits)}; give a whole number from 0 to 12")
    if binary is not True and binary is not False:
        raise ValueError(f"binary is {shown(binary)}; it is yes or no: give True or False")
    digits = int(digits)
    units = _BINARY if binary else _DECIMAL
    step = 1024 if binary else 1000
    number, power = float(abs(size)), 0
    while round(number, digits) >= step and power < len(units) - 1:
        number, power = number / step, power + 1
    number = round(number, digits)
    return f"{'-' if size < 0 and number else ''}{_trimmed(number, digits)} {units[power]}"


def format_speed(bits_per_second: float) -> str:
    """A link's speed with its unit: `format_speed(1.5e9)` is "1.5 Gbit/s". Decimal units, as all networks have.

    Four digits. Raises ValueError for what is not a finite number above 0.
    """
    return _scaled(
        "bits_per_second", bits_per_second, {"Tbit/s": 1e12, "Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1.0}
    )


def format_seconds(seconds: float) -> str:
    """A time with its unit: `format_seconds(0.005)` is "5 ms", `format_seconds(0)` is "0 s".

    Four digits. Raises ValueError for what is not a finite number of at least 0.
    """
    is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
    return "0 s" if is_number and seconds == 0 else _scaled("seconds", seconds, {"s": 1.0, "ms": 1e-3, "µs": 1e-6})


def _scaled(name: str, value: Real, units: dict[str, float]) -> str:
    """`value` in the largest unit of which it has at least one, or in the last; `units` go from large to small."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < as_float(value) < math.inf:
        raise ValueError(f"{name} is {shown(value)}; give a finite number above 0")
    number = float(f"{float(value):.4g}")  # rounded first: 999.99 Mbit/s is 1 Gbit/s
    unit = next((u for u, size in units.items() if number >= size), list(units)[-1])
    scaled = number / units[unit]
    return f"{scaled:,.0f} {unit}" if 1e4 <= scaled < 1e15 else f"{scaled:.4g} {unit}"


def shown(value: object) -> str:
    """`repr` on one line, cut to a line's length; integers that are longer than that are named instead."""
    if isinstance(value, int) and abs(value) > 10**300:
        return "a number too large for a float"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a list of such integers, or a class whose repr fails
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"


def _trimmed(number: float, digits: int) -> str:
    """`number` with at most `digits` decimals and no zeros at its end."""
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
