"""The bytes of parameters at each event of a step: the laws' fractions, unequal units, a root, other settings."""

import pytest

from utils.theory.allocations import gathered_share
from utils.theory.lifecycle import LIFE, hiding_bandwidth, lifecycle
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.units import MiB

L = 4


def shares(world_size, **options):
    """By label: bytes over those of all parameters, for four units of 100 parameters."""
    return {event.label: event.bytes / (4 * 100 * L) for event in lifecycle([100] * L, world_size, **options).events}


@pytest.mark.parametrize("world_size", [2, 4])
def test_equal_units_hold_what_the_law_says(world_size):
    found = shares(world_size)
    assert found["forward begins"] == found["forward of 0 done"] == found["backward done"] == 1 / world_size
    assert [found[f"forward of {i} begins"] for i in range(L)] == [gathered_share(world_size, L)] * L
    assert [found[f"backward of {i} begins"] for i in (1, 2, 3)] == [gathered_share(world_size, L, 1)] * 3
    assert found["backward of 0 begins"] == gathered_share(world_size, L)  # nothing is left to prefetch
    assert found["backward begins"] == found["backward of 3 begins"]


def test_events_are_the_life_of_every_unit_in_order():
    labels = [event.label for event in lifecycle([1] * 2, 2).events]
    assert labels == [
        *("forward begins", "forward of 0 begins", "forward of 0 done", "forward of 1 begins", "forward of 1 done"),
        *("forward done", "backward begins", "backward of 1 begins", "backward of 0 begins", "backward done"),
    ]
    assert LIFE[0] == LIFE[-1] == "shard" and LIFE.count("all_gather") == 2


def test_prefetch_holds_the_units_ahead_as_far_as_there_are_any():
    found = lifecycle([100] * L, 2, forward_prefetch=2, backward_prefetch=0)
    assert [found[f"forward of {i} begins"].arriving for i in range(L)] == [800, 800, 400, 0]
    assert all(event.arriving == 0 for event in found.events if event.phase == "backward")
    assert lifecycle([100] * L, 2, backward_prefetch=99).peak.bytes == 4 * 100 * L * (1 / 2 + 1)


def test_units_of_different_sizes_count_each_with_its_own():
    found = lifecycle([10, 1000, 20], 2)
    assert found["forward of 1 begins"].bytes == 4 * 1030 / 2 + 4 * 1000
    assert found["backward of 2 begins"].bytes == 4 * 1030 / 2 + 4 * (20 + 1000)
    assert found["backward of 1 begins"].bytes == 4 * 1030 / 2 + 4 * (1000 + 10)
    assert found.peak.label == "backward begins"
    assert found.at_rest == 4 * 1030 / 2


def test_a_root_is_gathered_once_and_kept_until_backward_is_done():
    found = lifecycle([100] * L, 2, root=50)
    assert found["forward begins"].bytes == 4 * 450 / 2 + 4 * 50
    assert found["forward of 2 done"].gathered == 4 * 50
    assert found["backward begins"].bytes == 4 * 450 / 2 + 4 * 50 + 4 * 100  # the last unit is being prefetched
    assert found["backward of 0 begins"].gathered == 4 * 150
    assert found["backward done"].bytes == 4 * 450 / 2


def test_without_resharding_all_units_are_whole_after_forward_and_go_one_by_one():
    found = shares(2, reshard=False)
    assert found["forward done"] == found["backward begins"] == 1 / 2 + 1
    assert found["backward of 1 begins"] == 1 / 2 + 2 / L


def test_a_smaller_group_keeps_a_part_of_every_unit_between_forward_and_backward():
    found = lifecycle([100] * L, 4, reshard=2)
    assert [found[f"forward of {i} done"].kept for i in range(L)] == [200, 400, 600, 800]
    assert found["backward of 3 begins"].kept == 4 * 300 / 2  # unit 3 is whole again: its part is let go
    assert found["backward of 0 begins"].kept == 0
    assert lifecycle([100] * L, 4, reshard=4) == lifecycle([100] * L, 4)


def test_copies_in_bf16_weigh_half_beside_fp32_shards():
    found = lifecycle([100] * L, 2, gathered_bytes=2)
    assert found["forward of 0 begins"].bytes == 4 * 400 / 2 + 2 * 100


def test_a_late_free_leaves_one_buffer_until_forward_is_done():
    found = lifecycle([100, 200], 2, late_free=True)
    assert [e.leftover for e in found.events if e.phase == "forward"] == [0, 400, 400, 800, 800, 0]
    assert not any(e.leftover for e in found.events if e.phase == "backward")


@pytest.mark.parametrize("world_size", [2, 4])
def test_at_the_hiding_bandwidth_only_the_first_gather_and_the_last_reduce_scatter_show(world_size):
    unit, layers = 4 * MiB, 8
    speed = hiding_bandwidth(unit, world_size, 0.010)
    sent = (world_size - 1) / world_size * unit

    def exposed(speed):
        step = simulate_step([Layer(0.010, gradient_bytes=unit)] * layers, world_size, Link(speed), "fsdp")
        return step.exposed / (sent / speed)  # in gathers

    assert exposed(speed) == pytest.approx(exposed(10 * speed), abs=1e-6)
    assert exposed(0.9 * speed) > exposed(speed) + 0.5


@pytest.mark.parametrize(
    ("units", "options", "words"),
    [
        ([], {}, "units has 0 entries; give 1 to 10,000"),
        (7, {}, "units is 7; give the parameters of each unit"),
        ([0], {}, "unit 0 is 0; it is a number of parameters: give a finite number above 0"),
        ([1], {"world_size": 0}, "world_size is 0; it is a number of ranks"),
        ([1], {"reshard": 3}, "reshard is 3; a smaller group has a divisor of the 4 ranks"),
        ([1], {"reshard": 8}, "reshard is 8; it is a number of ranks, or True, or False: give a whole number of at"),
        ([1], {"backward_prefetch": -1}, "backward_prefetch is -1; it is a number of units gathered ahead"),
        ([1], {"root": -1}, "root is -1; it is parameters that no unit has"),
        ([1], {"late_free": 1}, "late_free is 1; it is yes or no"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(units, options, words):
    with pytest.raises(ValueError, match=words):
        lifecycle(units, **{"world_size": 4, **options})


def test_an_unknown_event_is_named():
    with pytest.raises(KeyError, match="no event 'step begins'"):
        lifecycle([1], 2)["step begins"]
