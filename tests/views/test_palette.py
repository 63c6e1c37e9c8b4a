"""Colours and hatches can be told apart, also by people who see colours differently, and text reads on each."""

from itertools import combinations

import numpy as np
import pytest

from utils.views.palette import INK, LABEL, MEANINGS, PAPER, SMALL, TITLE, ink_on, rank_colour

# Linear RGB as seen by people without one kind of cone. Source: Machado, Oliveira and Fernandes,
# "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1.0.
SEEN_BY = {
    "all cones": np.eye(3),
    "no long-wave cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle-wave cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of a linear sRGB colour, D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = np.clip(to_xyz @ rgb, 0, None) / (0.9505, 1.0, 1.089)
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def least_difference(colours, matrix):
    seen = [lab(np.array(matrix) @ linear(colour)) for colour in colours]
    return min(np.linalg.norm(a - b) for a, b in combinations(seen, 2))


@pytest.mark.parametrize("eyes", SEEN_BY)
def test_meanings_and_ranks_can_be_told_apart(eyes):
    """Differences in CIE L*a*b*: 2 is the least that people notice, 10 is seen at a glance."""
    assert least_difference([style.colour for style in MEANINGS], SEEN_BY[eyes]) > 15
    assert least_difference([rank_colour(rank) for rank in range(4)], SEEN_BY[eyes]) > 15
    assert least_difference([rank_colour(rank) for rank in range(8)], SEEN_BY[eyes]) > 10


def test_each_meaning_has_a_hatch_of_its_own():
    assert len({style.hatch for style in MEANINGS}) == len({style.name for style in MEANINGS}) == 7


def test_sixteen_ranks_have_sixteen_colours_and_none_is_a_meaning():
    ranks = {rank_colour(rank) for rank in range(16)}
    assert len(ranks) == 16
    assert not ranks & {style.colour for style in MEANINGS}


def test_text_reads_on_every_colour():
    def luminance(colour):
        return linear(colour) @ (0.2126, 0.7152, 0.0722)

    def contrast(one, other):
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    for colour in [style.colour for style in MEANINGS]:
        assert contrast(ink_on(colour), colour) >= 3, f"{ink_on(colour)} on {colour}"
    for colour in [rank_colour(rank) for rank in range(16)]:
        assert contrast(INK, colour) >= 4.5 and ink_on(colour) == INK, f"numbers on {colour}"
    assert ink_on("#FFFFFF") == INK and ink_on("#000000") == PAPER


def test_no_text_is_smaller_than_nine_points():
    assert min(TITLE, LABEL, SMALL) >= 9
