"""Sizes are written out with the unit that a reader expects."""

import math

import pytest

from utils.theory.units import GB, GiB, KiB, MiB, format_bytes


@pytest.mark.parametrize(
    "size, text",
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KiB, "1 KiB"),
        (1023.999, "1 KiB"),
        (48 * MiB, "48 MiB"),
        (1.5 * GiB, "1.5 GiB"),
        (GiB - 1, "1 GiB"),
        (-3.25 * MiB, "-3.25 MiB"),
        (100 * MiB, "100 MiB"),
        (5 * 1024 * GiB, "5 TiB"),
    ],
)
def test_powers_of_two(size, text):
    assert format_bytes(size) == text


def test_powers_of_ten_and_digits():
    assert format_bytes(17.24 * GB, binary=False) == "17.24 GB"
    assert format_bytes(17.24 * GB, binary=False, digits=0) == "17 GB"
    assert format_bytes(1000, binary=False) == "1 kB"
    assert format_bytes(17.24 * GB) == "16.06 GiB"


@pytest.mark.parametrize("size", [math.nan, math.inf, True, "1", None])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(ValueError, match="size is "):
        format_bytes(size)
