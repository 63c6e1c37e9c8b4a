"""The ring as pictures: step by step, its cost, its bandwidth against the size; the player and the calculator."""

import math
import re

import numpy as np
import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.links import LINKS, AlphaBeta
from utils.theory.models import PRESETS
from utils.theory.ring import ring_cost, ring_states
from utils.theory.units import GiB, KiB, MiB
from utils.views.figure import WIDTH
from utils.views.png import size
from utils.views.ring import HEIGHT, ring_picture, ring_scene, ring_words
from utils.views.ring_bandwidth import HEIGHT as BANDWIDTH_HEIGHT
from utils.views.ring_bandwidth import bandwidth_picture, bandwidth_scene
from utils.views.ring_calculator import A_TENSOR, ALPHAS, NAMES, RANKS, RingCalculator
from utils.views.ring_cost import HEIGHT as COST_HEIGHT
from utils.views.ring_cost import Question, ring_cost_scene, time_text
from utils.views.ring_stepper import RingStepper

LINK = AlphaBeta(5e-3, 1 / 25e6)
POINTS = [(KiB * 4**k, ring_cost(KiB * 4**k, 4, LINK).seconds * 1.05) for k in range(8)]


@pytest.mark.parametrize("n", range(2, 9))
def test_every_step_is_readable(n, readable):
    for step in range(2 * (n - 1) + 1):
        readable(ring_scene(n, step, 64 * MiB), WIDTH, HEIGHT)


def test_the_words_say_what_moves_and_what_it_cost():
    words = ring_words(4, 2, 64 * MiB)
    assert "Step 2 of 6: reduce-scatter" in words
    for each in ring_states(4)[2].transfers:
        assert f"part {each.part} from {each.source} to {each.target}" in words
    assert "2 of 6 parts, 0.50 S of 1.50 S (32 MiB)" in words
    assert "16 of 16 parts are complete sums" in ring_words(4, 6, 64 * MiB)
    assert repr(ring_picture(4, 2, 64 * MiB)) == words


def test_every_step_looks_different():
    pictures = {ring_picture(3, step, MiB).image_bytes() for step in range(5)}
    assert len(pictures) == 5


@pytest.mark.parametrize(("n", "step", "words"), [(1, 0, "world_size is 1"), (9, 0, "is 9"), (4, 7, "step is 7")])
def test_rings_that_cannot_be_drawn_are_refused(n, step, words):
    with pytest.raises(ValueError, match=words):
        ring_scene(n, step, MiB)


def test_bandwidth_scene_is_readable_and_its_words_hold_both_numbers(readable):
    readable(bandwidth_scene(POINTS, 4, LINK, "A ring"), WIDTH, BANDWIDTH_HEIGHT)
    words = repr(bandwidth_picture(POINTS, 4, LINK, "A ring"))
    shares = re.findall(r"predicted (\d\.\d\d), measured (\d\.\d\d)", words)
    assert len(shares) == len(POINTS)
    assert all(float(measured) <= float(predicted) for predicted, measured in shares)
    with pytest.raises(ValueError, match="a curve takes two"):
        bandwidth_scene(POINTS[:1], 4, LINK, "A ring")


def test_a_point_on_the_law_lies_on_its_line():
    exact = [(s, ring_cost(s, 4, LINK).seconds) for s, _ in POINTS]
    scene = bandwidth_scene(exact, 4, LINK, "A ring")
    filled = [box for box in scene.boxes if box.fill != "#FFFFFF"][1:]  # the first is the key's
    law = [(line.x0, line.y0) for line in scene.lines if line.width == 2.0]
    for box in filled:
        x, y = box.x + box.width / 2, box.y + box.height / 2
        near = min(law, key=lambda point: abs(point[0] - x))
        assert abs(near[1] - y) < 8


@pytest.mark.parametrize("n", [2, 3, 64, 1024])
@pytest.mark.parametrize("total_bytes", [KiB, 64 * MiB, 64 * GiB])
def test_cost_scene_is_readable(n, total_bytes, readable):
    for link in ("NVLink 5", "Ethernet 1G", "8 x InfiniBand NDR, DGX H100"):
        for alpha in (ALPHAS[0], ALPHAS[-1]):
            question = Question("Llama-3.1-405B", total_bytes, n, LINKS[link], alpha)
            readable(ring_cost_scene(question), WIDTH, COST_HEIGHT)


def test_times_in_words():
    assert [time_text(s) for s in (0.0, 3.4e-6, 1.764e-3, 0.5324, 12.34, 215.4, 4321)] == [
        "0 s", "3.4 µs", "1.76 ms", "532 ms", "12.3 s", "215 s", "4,321 s"
    ]  # fmt: skip


@pytest.fixture
def stepper():
    made = RingStepper()
    yield made
    made.close_all()


@pytest.fixture
def calculator():
    made = RingCalculator()
    yield made
    made.close_all()


def test_stepping_forwards_and_back(stepper):
    stepper._back.click()
    assert stepper.step == 0
    for step in range(1, 7):
        stepper._forward.click()
        assert stepper.result.state == ring_states(4)[step]
        assert f"Step {step} of 6" in stepper._words.value
    stepper._forward.click()
    assert stepper.step == 6
    stepper._back.click()
    assert stepper.step == 5


def test_playing_moves_the_step_and_another_number_of_ranks_starts_again(stepper):
    before = stepper._image.value
    stepper._play.value = 3
    assert stepper.step == 3 and stepper._image.value != before
    stepper.ranks = 8
    assert (stepper.step, stepper._play.value, stepper._play.max, stepper._step.max) == (0, 0, 14, 14)
    stepper.step = 99
    assert stepper.step == 14
    stepper.ranks = 2
    assert (stepper.step, stepper._step.max) == (0, 2)
    for bad in ("2", None, True, math.nan):
        with pytest.raises(ValueError, match="give a number"):
            stepper.step = bad


def test_stepper_is_live_and_leaves_a_picture(stepper):
    bundle = stepper._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == stepper.model_id
    assert "Before the first of 6 steps" in bundle["text/plain"] and bundle["image/png"]
    assert size(stepper.image_bytes()) == (WIDTH, HEIGHT)


def test_every_control_of_the_calculator_counts(calculator):
    calculator.what = A_TENSOR
    for name, value in (("size", 2 * MiB), ("ranks", 1024), ("link", "Ethernet 10G"), ("alpha", 1e-3)):
        before = calculator.result, calculator._words.value, calculator._image.value
        setattr(calculator, name, value)
        after = calculator.result, calculator._words.value, calculator._image.value
        assert all(old != new for old, new in zip(before, after, strict=True)), name
    calculator.what = "GPT-2"
    sixteen = calculator.result.question.total_bytes
    calculator.precision = "32 bit"
    assert calculator.result.question.total_bytes == 2 * sixteen == 4 * PRESETS["GPT-2"].parameters


def test_the_calculators_result_is_the_laws(calculator):
    for what in (NAMES[0], NAMES[1], NAMES[-1]):
        for ranks in (RANKS[0], RANKS[-1]):
            calculator.what, calculator.ranks = what, ranks
            question = calculator.result.question
            link = AlphaBeta(calculator.alpha, 1 / LINKS[calculator.link].one_way)
            assert calculator.result.cost == ring_cost(question.total_bytes, ranks, link)
            assert calculator.result.words in calculator._words.value.replace("&#x27;", "'")


def test_calculator_takes_the_nearest_and_refuses_the_rest(calculator):
    for value, becomes in ((1, 2), (5, 4), (10**6, 1024), (np.int64(8), 8), (math.inf, 1024)):
        calculator.ranks = value
        assert calculator.ranks == becomes
    calculator.size = 0
    assert calculator.size == KiB
    for name in ("ranks", "size", "alpha"):
        with pytest.raises(ValueError, match=f"{name} is .*; give a number"):
            setattr(calculator, name, "4")
    with pytest.raises(ValueError, match="InfiniBand NDR"):
        calculator.link = "Infiniband NDR4"


def test_the_answers_that_the_lesson_folds_away_are_the_laws(calculator):
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/03_ring_cost.ipynb").cells}
    _, _, answers = cells["03-tree-nccl"].partition("<summary>Answers</summary>")
    calculator.link = "Ethernet 1G"
    for ranks in (8, 1024):
        calculator.ranks = ranks
        assert f"{time_text(calculator.result.cost.seconds)} on {ranks:,}" in answers
    calculator.link, calculator.what, calculator.size, calculator.ranks = "InfiniBand NDR", A_TENSOR, MiB, 64
    cost = calculator.result.cost
    assert f"{time_text(cost.seconds)} in the ring and {time_text(cost.tree_seconds)} in the tree" in answers
    assert f"from {cost.crossover / 1e6:.2f} MB up" in answers and cost.seconds > cost.tree_seconds
    calculator.what = "Llama-2-7B"
    for ranks, text in ((2, "6.74 GB on 2 ranks"), (64, "210.58 MB on 64")):
        calculator.ranks = ranks
        assert text in answers
        assert calculator.result.cost.buffer / (1e9 if ranks == 2 else 1e6) == pytest.approx(
            float(text.split()[0]), abs=0.006
        )
