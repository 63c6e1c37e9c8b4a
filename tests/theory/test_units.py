"""Sizes are written out with the unit that a reader expects."""

import math

import pytest

from utils.theory.units import GB, GiB, KiB, MiB, format_bytes, format_seconds, format_speed


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


@pytest.mark.parametrize(
    ("speed", "text"),
    [
        (1e9, "1 Gbit/s"),
        (1.5e9, "1.5 Gbit/s"),
        (200e6, "200 Mbit/s"),
        (999_999_999, "1 Gbit/s"),
        (1, "1 bit/s"),
        (20e9, "20 Gbit/s"),
    ],
)
def test_speeds_of_links(speed, text):
    assert format_speed(speed) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (0.005, "5 ms"), (2e-4, "200 µs"), (1, "1 s"), (0.99999, "1 s"), (1e-7, "0.1 µs")]
)
def test_times(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize("write", [format_speed, format_seconds])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -1, True, "1", None, 10**400])
def test_what_is_no_speed_or_time_is_refused(write, bad):
    with pytest.raises(ValueError, match="; give a finite number above 0"):
        write(bad)


@pytest.mark.parametrize("size", [math.nan, math.inf, True, "1", None])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(ValueError, match="size is "):
        format_bytes(size)
