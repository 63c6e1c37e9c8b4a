"""What failures cost at scale: Young's and Daly's interval, against a simulation that knows neither."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.restarts import (
    HOUR,
    LLAMA_3_GPU_HOURS,
    daly_interval,
    loss,
    lost_per_day,
    mean_time_between_failures,
    steps_lost,
    young_interval,
)


def test_published_failures():
    """419 interruptions in 54 days on 16,384 GPUs: one every 3.1 hours."""
    assert mean_time_between_failures(16_384) / HOUR == pytest.approx(54 * 24 / 419)
    assert pytest.approx(50_677, rel=1e-4) == LLAMA_3_GPU_HOURS
    assert mean_time_between_failures(64) == pytest.approx(256 * mean_time_between_failures(16_384))


def test_youngs_interval_by_hand():
    assert young_interval(60, 3 * HOUR) == pytest.approx((2 * 60 * 10_800) ** 0.5)
    assert young_interval(10, 20_000) == pytest.approx(632.456, rel=1e-5)


@given(st.floats(1, 600), st.floats(1000, 1e7), st.floats(0, 1000))
def test_shares_are_a_whole(checkpoint, failure, restart):
    found = loss(young_interval(checkpoint, failure), checkpoint, failure, restart)
    parts = (found.useful, found.writing, found.again, found.restarting)
    assert all(0 <= part <= 1 for part in parts) and sum(parts) == pytest.approx(1)
    assert found.lost == pytest.approx(1 - found.useful)


@pytest.mark.parametrize("gpus", [64, 1024, 16_384])
@pytest.mark.parametrize("checkpoint", [10, 60, 300])
def test_dalys_interval_loses_least_by_his_whole_time(gpus, checkpoint):
    failure = mean_time_between_failures(gpus)
    best = loss(daly_interval(checkpoint, failure), checkpoint, failure, 300).useful
    grid = [loss(daly_interval(checkpoint, failure) * factor, checkpoint, failure, 300).useful for factor in (0.7, 1.4)]
    assert best > max(grid)
    young = loss(young_interval(checkpoint, failure), checkpoint, failure, 300).useful
    assert young <= best + 1e-6 and best - young < 0.002


def simulated(interval, checkpoint, failure, restart, hours, seed=0):
    """The share of a job's time that is kept, with failures drawn at any moment."""
    draw = random.Random(seed)
    now, kept, next_failure = 0.0, 0.0, draw.expovariate(1 / failure)
    end = hours * HOUR
    while now < end:
        if now + interval + checkpoint <= next_failure:
            now, kept = now + interval + checkpoint, kept + interval
            continue
        now = next_failure
        while True:  # a restart may be interrupted, and then begins again
            next_failure = now + draw.expovariate(1 / failure)
            if now + restart <= next_failure:
                now += restart
                break
            now = next_failure
    return kept / now


@pytest.mark.parametrize(("failure", "restart"), [(3 * HOUR, 300), (HOUR, 600), (40 * HOUR, 60)])
@pytest.mark.parametrize("factor", [0.5, 1, 2])
def test_the_whole_time_is_that_of_a_simulation(failure, restart, factor):
    interval = factor * young_interval(60, failure)
    law = loss(interval, 60, failure, restart).useful
    assert simulated(interval, 60, failure, restart, hours=3000 * failure / HOUR) == pytest.approx(law, abs=0.01)


def test_nothing_gets_done_where_an_interval_outlives_any_luck():
    found = loss(1e6, 60, 60, 60)
    assert found.useful == 0 and found.lost == 1


def test_daly_where_a_checkpoint_takes_longer_than_the_time_between_failures():
    assert daly_interval(200, 100) == 100


def test_steps_lost():
    assert steps_lost(1) == (0, 1) and steps_lost(10) == (4.5, 10)
    draw, total = random.Random(1), 0
    for _ in range(20_000):
        total += draw.randrange(10_000) % 10
    assert total / 20_000 == pytest.approx(steps_lost(10)[0], rel=0.02)


def test_lost_per_day():
    failures, hours = lost_per_day(100, 10, 16_384)
    assert failures == pytest.approx(24 / (54 * 24 / 419))
    assert hours == pytest.approx(failures * 16_384 * 50 * 10 / 3600)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_time_between_failures(0), "gpus is 0"),
        (lambda: mean_time_between_failures(8, -1), "gpu_hours is -1"),
        (lambda: young_interval(0, 1), "checkpoint_seconds is 0"),
        (lambda: young_interval(1, "h"), "failure_seconds is 'h'"),
        (lambda: loss(0, 1, 1), "interval is 0"),
        (lambda: loss(1, 1, 1, -1), "restart_seconds is -1"),
        (lambda: steps_lost(0), "every is 0"),
        (lambda: lost_per_day(1, 0, 8), "step_seconds is 0"),
        (lambda: lost_per_day("x", 1, 8), "every is 'x'"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
