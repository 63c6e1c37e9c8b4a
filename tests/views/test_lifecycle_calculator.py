"""The calculator of lesson 05 shows what the law says, in every setting, and keeps one figure."""

import re

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.flops import PEAK_FLOPS
from utils.theory.fsdp_step import PRECISIONS, fsdp_step
from utils.theory.lifecycle import lifecycle
from utils.theory.links import LINKS
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.theory.units import GB
from utils.views.figure import WIDTH
from utils.views.fsdp_step import HEIGHT, fsdp_step_scene, joined, largest_of_each_block
from utils.views.lifecycle_calculator import LATENCY, LAYERS, LifecycleCalculator
from utils.views.palette import COMMUNICATION, PAPER
from utils.views.png import size


@pytest.fixture
def calculator():
    made = LifecycleCalculator("GPT-2", gpus=8)
    yield made
    made.close_all()


def test_every_control_changes_the_result_the_words_and_the_picture(calculator, controls):
    values = (
        "Llama-2-7B", "fp32", "kept after forward", 64, 4, 0, True, 8192, 2, "24 GB", "A100", "Ethernet 10G",
    )  # fmt: skip
    assert len(controls(calculator)) == len(values)
    for control, value in zip(controls(calculator), values, strict=True):
        before = calculator._words.value, calculator._image.value
        control.value = value
        after = calculator._words.value, calculator._image.value
        assert all(old != new for old, new in zip(before, after, strict=True)), control.description


def test_result_is_the_laws():
    model, found = PRESETS["Llama-2-7B"], LifecycleCalculator("Llama-2-7B", gpus=8, layers=2, recompute=True)
    link = Link(LINKS["InfiniBand NDR"].one_way, LATENCY)
    step = fsdp_step(model, 8, link, 0.4 * PEAK_FLOPS["H100"], 2048, layers_in_unit=2, recompute=True)
    assert found.result.step == step and found.result.units == 16
    assert f"at most {step.peak.total / GB:.1f} GB" in found.result.words
    root, each = model.parameters - 32 * model.parameters_per_layer, 2 * model.parameters_per_layer
    law = lifecycle([each] * 16, 8, root=root, gathered_bytes=2, forward_prefetch=1)
    assert found.result.law == law and law.at_rest == 4 * model.parameters / 8
    assert "16 units and the root" in found.result.words and "Gathers in a step: 33" in found.result.words


@pytest.mark.parametrize("layers", LAYERS)
def test_units_of_several_layers_hold_all_of_the_model(layers):
    found = LifecycleCalculator("Llama-2-13B", gpus=64, layers=layers).result
    assert found.units == found.step.units == -(-40 // layers)
    assert found.law.whole == 4 * PRESETS["Llama-2-13B"].parameters


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precision_changes_shards_and_copies(precision):
    chosen = PRECISIONS[precision]
    found = LifecycleCalculator("Llama-2-7B", precision=precision, ahead=0).result
    unit, shards = PRESETS["Llama-2-7B"].parameters_per_layer, PRESETS["Llama-2-7B"].parameters / 64
    assert found.law.at_rest == chosen.recipe.weights * shards
    assert found.step.unit_bytes == chosen.copies * unit
    assert found.step.at_rest == pytest.approx(chosen.recipe.total * shards, rel=1e-5)  # and step counters


def test_kept_units_are_whole_between_forward_and_backward():
    found = LifecycleCalculator("Llama-2-7B", precision="fp32", resharding="kept after forward").result
    assert found.law["forward done"].gathered == found.law.whole
    loss = next(moment for moment in found.step.moments if moment.name == "loss")
    assert loss.gathered == found.law.whole
    assert "Gathers in a step: 33" in found.words


def test_no_sequence_is_longer_than_the_model_has_learned(calculator):
    calculator.sequence = 131072
    assert "1 x 1,024 tokens" in calculator.result.words


def test_each_block_has_one_moment_its_largest(calculator):
    moments = calculator.result.step.moments
    shown = largest_of_each_block(moments)
    assert max(moment.total for moment in shown) == calculator.result.step.peak.total
    assert len(shown) == 2 * 12 + 6
    assert [moment.name.split(",")[0] for moment in shown][:12] == ["forward"] * 12


def test_bars_nearer_than_a_pixel_are_one():
    assert joined([(0, 1), (5, 6), (1.05, 2)], 0.1) == [(0, 2), (5, 6)]
    assert joined([], 1) == []


@pytest.mark.parametrize("link", ["InfiniBand HDR", "InfiniBand NDR", "NVLink 5"])
def test_the_exposed_lane_is_as_long_as_the_words_say(calculator, link):
    """A striped box, less what lies over it in white."""
    calculator.model, calculator.link, calculator.sequence = "Llama-2-7B", link, 8192
    scene, time = fsdp_step_scene(calculator.shown), calculator.result.step.time
    (lane,) = [box for box in scene.boxes if box.hatched and box.y > HEIGHT - 70]
    white = sum(line.x1 - line.x0 for line in scene.lines if line.colour == PAPER)
    assert lane.edge == COMMUNICATION.colour
    assert (lane.width - white) / (WIDTH - 120) == pytest.approx(time.exposed / time.seconds, abs=0.02)


@pytest.fixture
def looked_at(calculator, readable, monkeypatch):
    """A calculator whose scenes are judged and not drawn."""
    scenes = []

    def look(self, scene, words):
        readable(scene, WIDTH, HEIGHT)
        scenes.append(scene)

    monkeypatch.setattr(LifecycleCalculator, "show", look)
    return calculator, scenes


def test_every_model_can_be_read(looked_at):
    calculator, scenes = looked_at
    for model in PRESETS:
        calculator.model = model
    assert len(scenes) >= len(PRESETS) - 1


@pytest.mark.parametrize("changes", [{}, {"recompute": True}, {"resharding": "kept after forward", "layers": 16}])
def test_pictures_are_readable_at_far_settings(looked_at, changes):
    calculator, scenes = looked_at
    for name, value in changes.items():
        setattr(calculator, name, value)
    for model, gpus, sequence in (("Pythia-14M", 2, 512), ("Llama-3.1-405B", 1024, 131072)):
        for memory in ("16 GB", "192 GB"):
            calculator.model, calculator.gpus, calculator.sequence, calculator.memory = model, gpus, sequence, memory
    assert len(scenes) > 8


def test_moves_redraw_one_figure(calculator, objects_kept):
    calculator.layers, calculator.ahead, calculator.gpus = 8, 99, 7
    assert (calculator.layers, calculator.ahead, calculator.gpus) == (8, 4, 8)
    assert size(calculator.image_bytes()) == (WIDTH, HEIGHT)
    assert objects_kept(calculator, 24) < 1000
    for name in ("model", "precision", "resharding", "memory", "gpu", "link"):
        with pytest.raises(ValueError, match=f"{name} is 'fp8', which is not known here"):
            setattr(calculator, name, "fp8")


def test_the_answers_that_the_lesson_folds_away_are_the_laws():
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/05_fsdp.ipynb").cells}
    lines = cells["05-calculator"].partition("<summary>Answers</summary>")[2].strip().split("\n- ")
    told = [re.findall(r"[\d.]+ (?:GB|s\b|tokens|%)|\d+%", line) for line in lines]
    calculator = LifecycleCalculator("Llama-2-70B", gpus=64)

    def step(**changes):
        for name, value in changes.items():
            setattr(calculator, name, value)
        return calculator.result.step

    def peak(**changes):
        return f"{step(**changes).peak.total / GB:.1f} GB"

    def seconds(kind="seconds"):
        return f"{getattr(calculator.result.step.time, kind):.3g} s"

    first = [peak()]
    assert step().peak.activations > 0.7 * step().peak.total and not step().fits(80 * GB)
    whole, before = seconds("compute"), seconds()
    slow = f"{step(recompute=True).tokens_per_second:.0f}"
    second = [peak(), seconds("compute"), whole, seconds()]
    assert seconds() == before
    assert step(micro_batch=2).hidden < 0.6
    fast = f"{step(micro_batch=4).tokens_per_second:.0f}"
    third = [f"{100 * step().hidden:.0f}%", f"{fast} tokens", peak(micro_batch=8), peak(micro_batch=16)]
    assert f"instead of {slow}" in lines[2]
    eight = peak(micro_batch=8)
    fourth = [peak(ahead=2), eight, seconds()]
    fourth += [f"{step(ahead=0).time.seconds:.3g} s", peak()]
    assert step().hidden < 0.01
    fifth = [peak(ahead=1, layers=4), seconds(), peak(layers=8)]
    usual = f"{step(micro_batch=1, layers=1).time.seconds:.3g} s"
    peak(resharding="kept after forward")
    sixth = [seconds(), usual, peak()]
    assert told == [first, second, third, fourth, fifth, sixth]
    calculator.close_all()
