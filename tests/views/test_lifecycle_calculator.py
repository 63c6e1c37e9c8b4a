"""The calculator of lesson 05 shows what the law says, in every setting, and keeps one figure."""

import re

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.lifecycle import lifecycle
from utils.theory.models import PRESETS
from utils.theory.units import GB
from utils.views.figure import WIDTH
from utils.views.lifecycle_calculator import LAYERS, PRECISIONS, LifecycleCalculator
from utils.views.lifecycle_curve import Curve, curve_height, curve_scene


def test_result_is_the_law_for_the_model():
    model, found = PRESETS["Llama-2-7B"], LifecycleCalculator("Llama-2-7B", gpus=8)
    root = model.parameters - 32 * model.parameters_per_layer
    law = lifecycle([model.parameters_per_layer] * 32, 8, root=root, gathered_bytes=2, forward_prefetch=1)
    assert found.result.law == law and found.result.units == 32
    assert found.result.law.at_rest == 4 * model.parameters / 8
    assert "32 units and the root" in found.result.words and "Gathers in a step: 65" in found.result.words


@pytest.mark.parametrize("layers", LAYERS)
def test_units_of_several_layers_hold_all_of_the_model(layers):
    found = LifecycleCalculator("Llama-2-13B", gpus=64, layers=layers).result
    assert found.units == -(-40 // layers)
    assert found.law.whole == 4 * PRESETS["Llama-2-13B"].parameters


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precision_changes_shards_and_copies(precision):
    shard, copy = PRECISIONS[precision]
    law = LifecycleCalculator("Llama-2-7B", precision=precision, ahead=0).result.law
    unit = PRESETS["Llama-2-7B"].parameters_per_layer
    assert law.at_rest == shard * PRESETS["Llama-2-7B"].parameters / 64
    assert law["forward of 0 begins"].gathered - law["forward begins"].gathered == copy * unit


def test_kept_units_are_whole_between_forward_and_backward():
    found = LifecycleCalculator("Llama-2-7B", precision="fp32", resharding="kept after forward")
    law = found.result.law
    assert law["forward done"].gathered == law.whole
    assert "Gathers in a step: 33" in found.result.words


@pytest.mark.parametrize("model", PRESETS)
def test_every_model_can_be_read(readable, model):
    law = LifecycleCalculator(model).result.law
    readable(curve_scene([Curve("", law)], f"{model}: parameters on each GPU"), WIDTH, curve_height(1))


def test_moves_redraw_one_figure(controls, objects_kept):
    calculator = LifecycleCalculator()
    assert len(controls(calculator)) == 6
    before = calculator._image.value
    calculator.layers, calculator.ahead, calculator.gpus = 8, 99, 7
    assert calculator._image.value != before
    assert (calculator.ahead, calculator.gpus) == (4, 8)
    assert objects_kept(calculator, 12) < 500
    with pytest.raises(ValueError, match="precision"):
        calculator.precision = "fp8"


def test_the_answers_that_the_lesson_folds_away_are_the_laws():
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/05_fsdp.ipynb").cells}
    _, _, answers = cells["05-calculator"].partition("<summary>Answers</summary>")
    said = [float(each) for each in re.findall(r"([\d.]+) GB", answers)]
    first, many, wide, kept = (
        LifecycleCalculator("Llama-2-70B", **changes).result.law
        for changes in ({}, {"gpus": 1024}, {"layers": 4}, {"resharding": "kept after forward"})
    )
    law = [first.at_rest, first.peak.bytes, first.peak.bytes - first.at_rest]
    law += [many.at_rest, many.peak.bytes - many.at_rest, wide.peak.bytes, kept.peak.bytes]
    assert said == [float(f"{size / GB:.3g}") for size in law]
