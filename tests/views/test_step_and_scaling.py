"""The picture of a step, and throughput against the number of ranks."""

import pytest

from utils.theory.scaling import strong_scaling, weak_scaling
from utils.views.figure import WIDTH
from utils.views.palette import COMMUNICATION
from utils.views.png import size
from utils.views.scaling import scaling_picture, scaling_scene
from utils.views.step import _height, step_picture, step_scene, step_words

RANKS = (1, 2, 4)
LAWS = {
    "strong scaling": [strong_scaling(n, 24, 0.030, 0.065) for n in RANKS],
    "weak scaling": [weak_scaling(n, 6, 0.030, 0.065) for n in RANKS],
}


def rates(factor=1.0):
    return {label: [factor * law.samples_per_second for law in laws] for label, laws in LAWS.items()}


@pytest.mark.parametrize("n", range(2, 7))
def test_the_step_can_be_read(readable, n):
    readable(step_scene(n), WIDTH, _height(n))
    assert size(step_picture(n).image_bytes()) == (WIDTH, _height(n))


def test_every_rank_takes_part_in_every_all_reduce_and_all_are_in_backward():
    scene = step_scene(3)
    bars = [box for box in scene.boxes if box.fill == COMMUNICATION.colour and box.width == 40]
    assert len(bars) == 9
    assert {bar.x for bar in bars} == {bar.x for bar in bars[:3]}
    backward = next(word for word in scene.words if word.text == "backward")
    assert min(bar.x for bar in bars) < backward.x < max(bar.x for bar in bars)
    assert "Forward: no communication" in step_words(3) and "Step: no communication" in step_words(3)


@pytest.mark.parametrize("n", [1, 7, 2.0, True])
def test_a_step_of_too_many_ranks_is_refused(n):
    with pytest.raises(ValueError, match="the picture has room for 2 to 6 ranks"):
        step_picture(n)


@pytest.mark.parametrize("factor", [1.0, 0.5, 1.3])
def test_scaling_can_be_read(readable, factor):
    picture = scaling_picture(LAWS, rates(factor))
    readable(scaling_scene(LAWS, rates(factor), "Throughput"), *size(picture.image_bytes()))


def test_the_words_of_scaling_hold_within_the_tolerance_only():
    alt = scaling_picture(LAWS, rates()).alt
    assert "strong scaling, 4 ranks: predicted 0.80; measured the same within 0.1." in alt
    noisy = {label: [r * (1 - 0.01 * i) for i, r in enumerate(found)] for label, found in rates().items()}
    assert scaling_picture(LAWS, noisy).alt == alt
    slow = rates()
    slow["strong scaling"][2] *= 0.8
    assert "strong scaling, 4 ranks: predicted 0.80; measured 0.6." in scaling_picture(LAWS, slow).alt


def test_labels_and_lengths_must_agree():
    with pytest.raises(ValueError, match="give both the same labels"):
        scaling_picture(LAWS, {"weak scaling": [1, 2, 3]})
    with pytest.raises(ValueError, match="strong scaling has 3 predictions and 2 measurements"):
        scaling_picture(LAWS, {**rates(), "strong scaling": [1.0, 2.0]})
    with pytest.raises(ValueError, match="1 rank first"):
        scaling_picture({"x": LAWS["weak scaling"][1:]}, {"x": [1.0, 2.0]})
