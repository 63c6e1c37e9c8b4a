"""Speeds and delays of links, as a person writes them: "200mbit", "1.5gbit", "5ms"."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any

from utils.theory.units import as_float, shown

SLOWEST, FASTEST = 1e6, 20e9  # bits per second
LONGEST_DELAY = 1.0  # seconds

_BITS = {"k": 1e3, "m": 1e6, "g": 1e9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg])bit(?:/s|ps)?")
_DELAY = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s)")


def bits_per_second(link: Any) -> float:
    """A link's speed from "200mbit", "1.5 Gbit/s" or a number of bits per second.

    Decimal units, as all networks have: 1 Gbit/s is 10**9 bits or 125 MB a second. Raises ValueError for what is no
    speed from 1 Mbit/s to 20 Gbit/s.
    """
    speed = _number(link, _SPEED, _BITS)
    if speed is None or not SLOWEST <= speed <= FASTEST:
        raise ValueError(
            f"link is {shown(link)}; give a speed from 1 Mbit/s to 20 Gbit/s, such as '200mbit' or '1.5gbit', or a "
            "number of bits per second."
        )
    return speed


def seconds(latency: Any) -> float:
    """A delay in seconds from "5ms", "200us", a number of seconds, or None for 0.

    Raises ValueError for what is no time from 0 to 1 second.
    """
    delay = 0.0 if latency is None else _number(latency, _DELAY, _SECONDS)
    if delay is None or not 0 <= delay <= LONGEST_DELAY:
        raise ValueError(
            f"latency is {shown(latency)}; give a time from 0 to {LONGEST_DELAY:g} s, such as '5ms', '200us', or a "
            "number of seconds."
        )
    return delay


def _number(value: Any, pattern: re.Pattern, units: dict[str, float]) -> float | None:
    """The value in the base unit; None for what is neither a number nor of this pattern."""
    if isinstance(value, str):
        match = pattern.fullmatch(value.strip().lower())
        return float(match[1]) * units[match[2]] if match else None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(as_float(value)):
        return None
    return float(value)
