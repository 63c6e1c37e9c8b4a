"""Collectives as the messages that gloo sends, and links that let a burst pass: by hand."""

import pytest

from utils.theory.events import Compute, Transfer, simulate
from utils.theory.gloo_messages import BACK, OUT, as_messages
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.units import MB

LINK = Link(100 * MB, by_messages=True)


def timeline_of(*tasks, ranks=2):
    return simulate(*as_messages(tasks, {OUT: LINK}, ranks))


def test_a_gather_takes_half_as_long_again():
    """Its second chunk comes back when it was sent, and the first one meanwhile."""
    assert timeline_of(Transfer("all_gather 0", 10 * MB)).seconds == pytest.approx(0.150)


def test_a_reduce_scatter_goes_both_ways_at_once():
    assert timeline_of(Transfer("reduce_scatter 0", 10 * MB)).seconds == pytest.approx(0.100)


def test_a_word_waits_behind_what_is_on_its_way_out():
    """A gather's chunks need 0.1 s to get out; only then does the other side hear of the reduce-scatter."""
    timeline = timeline_of(Transfer("all_gather 0", 10 * MB), Transfer("reduce_scatter 0", 10 * MB))
    assert timeline["all_gather 0"].end == pytest.approx(0.150)
    assert timeline["reduce_scatter 0"].end == pytest.approx(0.250)


def test_gathers_one_after_the_other_take_half_as_long_again_each():
    tasks = [Transfer(f"all_gather {i}", 10 * MB, after=(f"all_gather {i - 1}",) if i else ()) for i in range(4)]
    assert timeline_of(*tasks).seconds == pytest.approx(4 * 0.150)


def test_what_waits_for_a_collective_waits_for_its_last_message():
    timeline = timeline_of(Transfer("all_gather 0", 10 * MB), Compute("forward 0", 0.1, after=("all_gather 0",)))
    assert timeline["forward 0"].start == pytest.approx(0.150)


@pytest.mark.parametrize(("link", "ranks"), [(Link(100 * MB), 2), (Link(100 * MB), 3), (LINK, 1)])
def test_all_else_stays_as_it_is(link, ranks):
    tasks, links = [Transfer("all_gather 0", 10 * MB)], {OUT: link}
    assert as_messages(tasks, links, ranks) == (tasks, links)


@pytest.mark.parametrize("ranks", [3, 4, 8])
def test_a_ring_alone_takes_as_long_as_its_bytes(ranks):
    assert timeline_of(Transfer("all_gather 0", 10 * MB), ranks=ranks).seconds == pytest.approx(0.100)


def test_a_ring_waits_for_each_reduce_scatter_that_comes_in_between():
    """Of 4 ranks a gather is six messages of 10 ms. Two are out when at 15 ms a reduce-scatter of 100 ms comes."""
    tasks = (
        Transfer("all_gather 0", 6 * MB),
        Compute("backward 0", 0.015),
        Transfer("reduce_scatter 0", 10 * MB, after=("backward 0",)),
    )
    timeline = timeline_of(*tasks, ranks=4)
    assert timeline["reduce_scatter 0"].end == pytest.approx(0.130)  # behind the second message and the third
    assert timeline["all_gather 0"].end == pytest.approx(0.160)


def test_an_all_reduce_is_left_alone():
    tasks = [Transfer("all_reduce 0", 10 * MB), Compute("forward 0", 0.1)]
    assert as_messages(tasks, {OUT: LINK}, 2)[0] == tasks


def test_a_step_that_overlaps_nothing_is_the_sum():
    """Of two passes of gathers, half as long again, the reduce-scatters and the computations."""
    step = simulate_step([Layer(0.010, gradient_bytes=2 * MB)] * 5, 2, LINK, "fsdp", overlap=False)
    assert step.seconds == pytest.approx(5 * (2 * 0.015 + 0.010 + 0.030))
    assert step.communication == pytest.approx(5 * 3 * 0.010)
    assert {event.lane for event in step.timeline.events} == {"compute", OUT, BACK}


def test_gathers_that_hide_cost_the_first_of_each_pass_and_the_last_scatter():
    step = simulate_step([Layer(0.100, gradient_bytes=2 * MB)] * 5, 2, LINK, "fsdp")
    assert step.seconds == pytest.approx(5 * 0.300 + 2 * 0.015 + 0.010)


def bursts(*tasks, burst=2 * MB):
    return simulate(tasks, {"link": Link(100 * MB, burst=burst)})


def test_an_idle_link_lets_a_burst_pass_at_once():
    assert bursts(Transfer("a", 10 * MB)).seconds == pytest.approx(0.080)
    assert bursts(Transfer("a", 1 * MB)).seconds == 0


def test_what_is_left_of_a_burst_serves_the_next():
    assert bursts(Transfer("a", 1 * MB), Transfer("b", 5 * MB, after=("a",))).seconds == pytest.approx(0.040)


def test_a_bucket_fills_while_the_link_is_idle():
    """After 15 ms 1.5 MB may pass at once, after 50 ms the 2 MB that the bucket holds."""
    for pause, saved in ((0.015, 0.015), (0.050, 0.020)):
        tasks = Transfer("a", 10 * MB), Compute("pause", pause, after=("a",)), Transfer("b", 10 * MB, after=("pause",))
        assert bursts(*tasks).seconds == pytest.approx(0.080 + pause + 0.100 - saved)


def test_a_busy_link_has_no_burst():
    assert bursts(*[Transfer(f"t{i}", 10 * MB) for i in range(3)]).seconds == pytest.approx(0.280)


@pytest.mark.parametrize(
    ("options", "words"), [({"burst": -1}, "burst is -1"), ({"by_messages": 1}, "by_messages is 1")]
)
def test_a_wrong_link_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Link(1 * MB, **options)
