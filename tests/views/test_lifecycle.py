"""The life of parameters in pictures: areas are the law's, measured values stand where they lie, words can be read."""

import pytest

from utils.theory.lifecycle import lifecycle
from utils.views.figure import WIDTH
from utils.views.kinds import GRADIENT, WEIGHTS
from utils.views.lifecycle import HEIGHT, RANKS, UNITS, life, lifecycle_picture, lifecycle_scene, lifecycle_words
from utils.views.lifecycle_curve import ARRIVING, GATHERED, Curve, curve_height, curve_picture, curve_scene, curve_words
from utils.views.lifecycle_stepper import LifecycleStepper
from utils.views.palette import INK

STEPS = len(life(2).events)
WHOLE_LANE, SHARD_LANE = 22, 13


@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize("world_size", RANKS)
def test_every_event_can_be_read(readable, world_size, prefetch):
    for step in range(STEPS):
        readable(lifecycle_scene(step, world_size, prefetch), WIDTH, HEIGHT)


@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize("world_size", RANKS)
def test_areas_are_the_bytes_of_the_law(world_size, prefetch):
    for step, event in enumerate(life(world_size, prefetch).events):
        boxes = lifecycle_scene(step, world_size, prefetch).boxes
        shards = sum(b.width for b in boxes if b.fill == WEIGHTS.colour and b.height == SHARD_LANE)
        copies = [b for b in boxes if b.height == WHOLE_LANE]
        whole = sum(b.width for b in copies if b.hatched and b.edge == GATHERED.colour)
        ahead = sum(b.width for b in copies if b.fill == ARRIVING.colour)
        everything = sum(b.width for b in boxes if b.height == SHARD_LANE and b.fill != WEIGHTS.colour) / world_size
        law = 4 * UNITS / world_size  # bytes of one rank's shards, of one parameter a unit
        assert shards / everything == pytest.approx(world_size * event.shards / (4 * UNITS))
        assert whole / everything == pytest.approx(world_size * event.gathered / (world_size * law))
        assert ahead / everything == pytest.approx(world_size * event.arriving / (world_size * law))


def test_gradients_arrive_as_shards_one_unit_after_the_other():
    counts = [sum(b.fill == GRADIENT.colour for b in lifecycle_scene(step, 2).boxes) for step in range(STEPS)]
    begin = next(n for n, event in enumerate(life(2).events) if event.phase == "backward")
    assert set(counts[:begin]) == {1} and counts[begin:] == [1, 1, 3, 5, 7, 9]  # the key has one


def test_words_say_what_is_held():
    said = lifecycle_words(1, 2)
    assert "An all-gather has made unit 0 whole" in said and "1/2 + 1/4 = 0.75 of all parameters" in said
    said = lifecycle_words(STEPS - 4, 2)
    assert "unit 2 whole and unit 1 gathered ahead" in said and "1/2 + 2/4 = 1 of" in said
    assert "Gradient shards of unit 3." in said
    assert lifecycle_picture(0, 4).alt == lifecycle_words(0, 4)
    with pytest.raises(ValueError, match="step is 99"):
        lifecycle_picture(99)
    with pytest.raises(ValueError, match="world_size is 5; give one of 2, 3, 4"):
        lifecycle_picture(0, 5)


def test_stepper_moves_and_keeps_one_figure(objects_kept, controls):
    stepper = LifecycleStepper(ranks=4, step=2)
    assert stepper.result.event.label == "forward of 0 done"
    stepper._forward.click()
    assert stepper.result.event.label == "forward of 1 begins" and "Unit 1" not in stepper.result.words.split(".")[1]
    stepper.step = 1000
    assert stepper.result.event.label == "backward done"
    stepper.ranks, stepper.step, stepper.prefetch = 99, 11, False
    assert stepper.result.world_size == 4 and stepper.result.event.arriving == 0
    assert objects_kept(stepper, 12) < 500


def curves(world_sizes=(2, 4), off=0.0):
    laws = {f"{n} ranks": lifecycle([100] * 4, n) for n in world_sizes}
    return [Curve(name, law, [event.bytes + off for event in law.events]) for name, law in laws.items()]


def test_curves_can_be_read_and_marks_lie_on_their_bars(readable):
    found = curves()
    scene = curve_scene(found, "Title")
    readable(scene, WIDTH, curve_height(len(found)))
    marks = [line for line in scene.lines if line.colour == INK and line.width == 4 and line.y0 > 66]
    assert len(marks) == sum(len(curve.predicted.events) for curve in found)
    assert all(line.y0 == line.y1 for line in marks)
    tops = {round(box.y, 6) for box in scene.boxes}
    assert all(round(line.y0, 6) in tops for line in marks)
    assert "2 ranks: 0.5 of all parameters at rest, at most 1, first when backward begins; measured: 16 of 16" in (
        curve_words(found, "Title")
    )


def test_words_count_what_is_not_as_predicted():
    (found,) = curves((2,), off=40.0)
    assert found.equal == 0 and "0 of 16 events as predicted" in curve_picture([found]).alt


def test_many_units_and_every_kind_can_be_read(readable):
    for options in ({"reshard": 2}, {"late_free": True}, {"reshard": False}, {"root": 500, "forward_prefetch": 3}):
        found = [Curve("80 units", lifecycle([100] * 80, 8, **options))]
        readable(curve_scene(found, "Title"), WIDTH, curve_height(len(found)))


def test_wrong_counts_are_refused():
    with pytest.raises(ValueError, match="measured has 1 values for 16 events"):
        Curve("x", lifecycle([1] * 4, 2), [1.0])
    with pytest.raises(ValueError, match="curves is empty"):
        curve_picture([])
