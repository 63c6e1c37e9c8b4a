"""The calculator of lesson 02 and the picture of buckets, without a browser."""

import re

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.buckets import ddp_buckets
from utils.theory.ddp_step import ddp_step
from utils.theory.flops import PEAK_FLOPS
from utils.theory.links import LINKS
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.theory.units import MiB
from utils.views.buckets import MOST_BUCKETS, bucket_picture, bucket_scene
from utils.views.figure import WIDTH
from utils.views.overlap import HEIGHT, overlap_scene
from utils.views.overlap_calculator import LINK_NAMES, OverlapCalculator
from utils.views.png import size


@pytest.fixture
def calculator():
    made = OverlapCalculator("GPT-2", ranks=8)
    yield made
    made.close_all()


def test_every_control_changes_the_result_the_words_and_the_picture(calculator, controls):
    values = ("Llama-2-7B", "A100", "32 bit", "Ethernet 10G", 100, 50, 512, 512, True)
    for control, value in zip(controls(calculator), values, strict=True):
        before = calculator._words.value, calculator._image.value
        control.value = value
        after = calculator._words.value, calculator._image.value
        assert all(old != new for old, new in zip(before, after, strict=True)), control.description


def test_the_result_is_the_laws(calculator):
    link = Link(LINKS["InfiniBand NDR"].one_way, 5e-6)
    said = ddp_step(PRESETS["GPT-2"], 8, link, 4096, 0.4 * PEAK_FLOPS["H100"], 25 * MiB, 2)
    assert calculator.result.found.step.seconds == said.step.seconds
    assert calculator.result.found.buckets == said.buckets
    assert f"{len(said.buckets)} buckets" in calculator.result.words


def test_numbers_out_of_range_become_the_nearest_and_unknown_names_are_refused(calculator):
    calculator.cap, calculator.latency, calculator.ranks, calculator.tokens = 10**9, -5, 1, 3000
    assert (calculator.cap, calculator.latency, calculator.ranks, calculator.tokens) == (1000, 0, 2, 2048)
    for name in ("model", "gpu", "gradients", "link"):
        with pytest.raises(ValueError, match="is not known here"):
            setattr(calculator, name, "nothing")


def test_pictures_are_readable(calculator, readable):
    for model in ("GPT-2", "Llama-2-70B"):
        for link in LINK_NAMES:
            calculator.model, calculator.link = model, link
            readable(overlap_scene(calculator.result.found, False, "One step"), WIDTH, HEIGHT)
    assert size(calculator.image_bytes()) == (WIDTH, HEIGHT)


def test_moving_keeps_nothing(calculator, objects_kept):
    assert objects_kept(calculator, 18) < 1000


def test_bucket_picture_says_what_is_in_each_bucket(readable):
    sizes, names = [3 * MiB // 2] * 5, [f"layer {n}" for n in range(4, -1, -1)]
    buckets = ddp_buckets(sizes, bucket_cap_bytes=2 * MiB)
    scene, height = bucket_scene(sizes, buckets, names, 2 * MiB, "Buckets")
    readable(scene, WIDTH, height)
    alt = bucket_picture(sizes, buckets, names, 2 * MiB).alt
    assert "bucket 0: layer 4, layer 3, 3 MiB; bucket 1: layer 2, layer 1, 3 MiB; bucket 2: layer 0, 1.5 MiB" in alt


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (([4], [], ["a"], 4), "there are 0 buckets"),
        (([4] * 99, [[i] for i in range(99)], ["a"] * 99, 4), f"1 to {MOST_BUCKETS} can be drawn"),
        (([4], [[0]], [], 4), "0 names for 1 gradients"),
        (([4], [[7]], ["a"], 4), "no positions among 1 tensors"),
        (([4], [[0]], ["a"], 0), "cap is 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        bucket_picture(*arguments)


def test_the_answers_that_the_lesson_folds_away_are_the_laws(calculator):
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/02_buckets_and_overlap.ipynb").cells}
    _, _, answers = cells["02-calculator"].partition("<summary>Answers</summary>")
    calculator.model, calculator.ranks = "Llama-2-7B", 64

    def exposed(**changes):
        for name, value in changes.items():
            setattr(calculator, name, value)
        return f"{1e3 * calculator.result.found.step.exposed:.0f} ms"

    told = re.findall(r"\d+ ms", answers)
    found = [exposed(), exposed(tokens=8192), exposed(tokens=16384), exposed(tokens=4096, link="NVLink 4")]
    assert told == found
