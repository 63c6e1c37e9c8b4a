"""Throughput and efficiency against the number of ranks."""

import math

import pytest

from utils.theory.scaling import strong_scaling, weak_scaling


def test_weak_scaling_multiplies_the_samples_and_keeps_the_time():
    for n in (1, 2, 64):
        law = weak_scaling(n, 6, 0.030, 0.065)
        assert law.seconds == pytest.approx(0.245)
        assert law.samples_per_second == pytest.approx(n * 6 / 0.245)
        assert law.efficiency == 1


def test_strong_scaling_is_held_back_by_what_is_repeated():
    laws = [strong_scaling(n, 24, 0.030, 0.065) for n in (1, 2, 4)]
    assert [law.seconds for law in laws] == pytest.approx([0.785, 0.425, 0.245])
    assert [law.efficiency for law in laws] == pytest.approx([1, 0.785 / 0.85, 0.785 / 0.98])
    for law in laws:
        ratio = law.samples_per_second / (law.world_size * laws[0].samples_per_second)
        assert law.efficiency == pytest.approx(ratio)
    limit = strong_scaling(10**6, 24, 0.030, 0.065)
    assert limit.samples_per_second == pytest.approx(24 / 0.065, rel=1e-4)


def test_without_repetition_strong_scaling_is_perfect():
    assert strong_scaling(64, 64, 0.010, 0).efficiency == 1


@pytest.mark.parametrize("law", [strong_scaling, weak_scaling])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 24, 0.03, 0.065), "world_size is 0; "),
        ((2.0, 24, 0.03, 0.065), "world_size is 2.0; "),
        ((2, 0, 0.03, 0.065), "the number of samples is 0; .*give a finite number above 0"),
        ((2, 24, -0.03, 0.065), "seconds_per_sample is -0.03; "),
        ((2, 24, 0.03, -1), "repeated is -1; .*give a finite number of at least 0"),
        ((2, 24, math.inf, 0), "seconds_per_sample is inf; "),
    ],
)
def test_numbers_out_of_range_are_refused(law, arguments, words):
    with pytest.raises(ValueError, match=words):
        law(*arguments)
