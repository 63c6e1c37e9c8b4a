"""Laws of chapter 07: whatever they are given, they answer with finite numbers or refuse in one sentence."""

import math
import warnings
from dataclasses import fields, is_dataclass

import numpy
import pytest

from utils.theory.algorithms import Choice, choices, crossover, fastest, in_switch
from utils.theory.fabric import crossing, ring_rate, shared_rate, uplink
from utils.theory.feed import checkpoint_bytes, checkpoint_stall, feed, most_ranks, step_with_loading, text
from utils.theory.host_path import Stage, stages, sustained, way_seconds
from utils.theory.restarts import daly_interval, loss, lost_per_day, mean_time_between_failures, steps_lost
from utils.theory.stragglers import chance_of_one, slowdown, step_of_all, wasted

JUNK = [None, [], (8,), {}, "", "8", b"x", math.nan, math.inf, -math.inf, -1, -0.5, 0, 0.0, True, 1.5, 3, 10**6, 10**18,
        10**30, 10**400, 1e-40, 1e300, object(), 1 + 2j, numpy.int8(8), numpy.int32(2**15), numpy.float16(3.5),
        numpy.float32(3.5), numpy.array([8]), numpy.array(8), "x" * 999, "\n"]  # fmt: skip
WAY, WAYS = stages(50e9, 60e9, False, 10e9), choices(8, 1, 370e9)
CALLS = [
    (mean_time_between_failures, (64, 5e4)),
    (daly_interval, (30, 1e4)),
    (loss, (600, 30, 1e4, 300)),
    (steps_lost, (10,)),
    (lost_per_day, (10, 5, 64, 5e4)),
    (text, ("Llama-3-8B", 4096, 2)),
    (feed, (text("Llama-3-8B"), 8, "H100", 0.4)),
    (step_with_loading, (0.1, 1e6, 1e7, 4, True)),
    (most_ranks, (0.1, 1e6, 1e7)),
    (checkpoint_bytes, (7e9, 14)),
    (checkpoint_stall, (1e9, 1e9, 1e10)),
    (Stage, ("copy", 1e9)),
    (stages, (5e10, 6e10, False, 1e10)),
    (way_seconds, (1e6, WAY, 1e5)),
    (sustained, (WAY,)),
    (step_of_all, ([0.1, 0.2], 0.01)),
    (slowdown, (8, 2.0)),
    (wasted, ([0.1, 0.2],)),
    (chance_of_one, (64, 0.01)),
    (uplink, (5e10, 4, 2)),
    (crossing, (16, 4, "by leaf")),
    (ring_rate, (5e10, 16, 4, 2, "at random")),
    (shared_rate, (1e9, 2)),
    (choices, (8, 2, 3e11, 1e-6)),
    (in_switch, (8, 4e11, 1e-5)),
    (fastest, (WAYS, 1e6)),
    (crossover, (WAYS[0], WAYS[2])),
    (Choice, ("ring", "LL", 1e-5, 1e9)),
]


def numbers(found):
    """All numbers in it."""
    if isinstance(found, tuple | list):
        return [each for part in found for each in numbers(part)]
    if is_dataclass(found):
        return [each for field in fields(found) for each in numbers(getattr(found, field.name))]
    return [found] if isinstance(found, float | int) else []


@pytest.mark.parametrize(("law", "given"), CALLS, ids=lambda each: getattr(each, "__name__", ""))
def test_answered_or_refused_in_one_sentence(law, given):
    assert all(math.isfinite(each) and each >= 0 for each in numbers(law(*given)))
    refused = 0
    for i in range(len(given)):
        for value in JUNK:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    found = law(*given[:i], value, *given[i + 1 :])
                except ValueError as error:
                    refused += 1
                    said = str(error)
                    assert "\n" not in said and len(said) < 400, said
                    assert any(what in said for what in ("give ", "choose ", "did you mean ")), said
                else:
                    assert all(math.isfinite(each) and each >= 0 for each in numbers(found)), (law, i, value)
    assert refused >= 8 * len(given)


def test_times_of_ranks_may_come_from_anywhere():
    times = [0.1, 0.1, 0.2]
    for same in (times, tuple(times), iter(times), numpy.array(times)):
        assert wasted(same) == pytest.approx(1 / 3)
    assert step_of_all(iter(times)) == 0.2
