"""Who holds what under each stage: areas are the laws' bytes, and the pictures can be read."""

from itertools import pairwise

import pytest

from utils.theory.memory import model_states
from utils.views.figure import WIDTH
from utils.views.kinds import GRADIENT, MASTER_WEIGHTS, MOMENTS, WEIGHTS
from utils.views.zero_stages import (
    _BYTES_HEIGHT,
    RANKS,
    STAGES,
    STRATEGY,
    sixteen_bytes_picture,
    sixteen_bytes_scene,
    stage_height,
    stage_picture,
    stage_scene,
    stage_words,
)


@pytest.mark.parametrize("world_size", RANKS)
@pytest.mark.parametrize("stage", STAGES)
def test_pictures_are_readable(readable, stage, world_size):
    readable(stage_scene(stage, world_size), WIDTH, stage_height(world_size))


@pytest.mark.parametrize("world_size", RANKS)
@pytest.mark.parametrize("stage", STAGES)
def test_widths_are_the_bytes_that_theory_says(stage, world_size):
    scene, law = stage_scene(stage, world_size), model_states(1, world_size, STRATEGY[stage])
    byte = 40
    for look, size in (
        (WEIGHTS, law.weights),
        (GRADIENT, law.gradients),
        (MASTER_WEIGHTS, law.master_weights),
        (MOMENTS, law.optimizer),
    ):
        boxes = [box for box in scene.boxes if (box.edge if look.hatched else box.fill) == look.colour]
        boxes = [box for box in boxes if box.hatched == look.hatched]
        assert sum(box.width for box in boxes) == pytest.approx(byte * size * world_size)


@pytest.mark.parametrize("stage", (1, 2, 3))
def test_the_parts_of_all_ranks_are_the_whole_and_none_is_held_twice(stage):
    moments = [box for box in stage_scene(stage, 4).boxes if box.fill == MOMENTS.colour]
    spans = sorted((box.x, box.x + box.width) for box in moments)
    assert len(spans) == 8  # two vectors on four ranks
    assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(spans))


def test_words_say_what_is_whole_and_what_is_a_part():
    said = stage_words(2, 4)
    assert "all of weights and one part of 4 each of gradients, master weights, first moments and second" in said
    assert "5.5 B per parameter, 22 on all ranks together" in said
    assert "all of" not in stage_words(3, 4) and "one part" not in stage_words(0, 4)
    assert stage_picture(1).alt == stage_words(1, 4)


def test_sixteen_boxes_make_a_parameter(readable):
    scene = sixteen_bytes_scene()
    readable(scene, WIDTH, _BYTES_HEIGHT)
    assert len(scene.lines) == 16 + len(scene.boxes)  # the edges of sixteen boxes in five groups
    assert "costs 16 bytes" in sixteen_bytes_picture().alt


@pytest.mark.parametrize(
    ("arguments", "told"), [((4,), "stage is 4; give one of 0, 1, 2, 3"), ((2, 5), "world_size is 5")]
)
def test_what_cannot_be_drawn_is_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        stage_picture(*arguments)
