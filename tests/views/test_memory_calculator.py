"""The calculator without a browser: set a control, read the result and the picture."""

import statistics
import time

import pytest
from traitlets import TraitError

from utils.theory.memory import max_parameters, model_states
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.units import GB, GiB
from utils.views.figure import WIDTH
from utils.views.memory import HEIGHT
from utils.views.memory_calculator import GPUS, MEMORIES, MemoryCalculator
from utils.views.png import size


@pytest.fixture
def calculator():
    made = MemoryCalculator()
    yield made
    made.close_all()


def test_every_control_changes_the_result_the_words_and_the_picture(calculator, controls):
    settings = ("Llama-2-13B", 3 * 10**9, "adam-8bit", True, "24 GB", 20, 64)
    for control, value in zip(controls(calculator), settings, strict=True):
        before = calculator.result, calculator._words.value, calculator._image.value
        control.value = value
        after = calculator.result, calculator._words.value, calculator._image.value
        assert all(old != new for old, new in zip(before, after, strict=True)), control.description
    asked = calculator.result.question
    assert (asked.parameters, asked.memory, asked.recipe) == (3e9, 24 * GB, "adam-8bit")
    assert (asked.world_size, asked.reserve, asked.gradient_as_bucket_view) == (64, 0.2, False)


def test_the_result_is_the_laws(calculator):
    for name, recipe, memory in zip(PRESETS, PRECISION_RECIPES, MEMORIES, strict=False):
        calculator.model, calculator.recipe, calculator.memory = name, recipe, memory
        result = calculator.result
        assert result.states == model_states(PRESETS[name].parameters, 8, "ddp", recipe=recipe)
        assert result.most_parameters == max_parameters(MEMORIES[memory], 8, "ddp", recipe)
        assert result.words.replace("'", "&#x27;") in calculator._words.value


def test_gigabytes_and_gibibytes_are_both_offered_and_told_apart(calculator):
    calculator.memory = "80 GB"
    assert calculator.result.most_parameters == 5 * 10**9
    calculator.memory = "80 GiB"
    assert calculator.result.most_parameters == 80 * GiB // 16
    assert "80 GiB = 85.9 GB" in calculator.result.words


def test_moving_the_slider_of_parameters_leaves_the_preset(calculator, controls):
    assert calculator.model == "Llama-2-7B"
    controls(calculator)[1].value = 10**12
    assert calculator.model == 10**12 and calculator.result.question.name == ""
    calculator.model = "Llama-3-8B"
    assert calculator.result.question.parameters == 8030261248
    assert controls(calculator)[1].value == 7 * 10**9  # the slider follows, and does not leave the preset again


def test_numbers_of_parameters_are_not_written_like_bytes(calculator, controls):
    labels = [label for label, _ in controls(calculator)[1].options]
    assert labels[0] == "100 million" and "7 billion" in labels and labels[-1] == "1 trillion"


def test_more_gpus_change_nothing_on_each(calculator):
    totals = set()
    for gpus in GPUS:
        calculator.gpus = gpus
        totals.add(calculator.result.states.total)
    assert totals == {16 * 6738415616}


def test_every_control_has_a_label_a_tooltip_and_a_fixed_width(calculator, controls):
    found = controls(calculator)
    assert [control.description for control in found] == [
        "Model", "Parameters", "Recipe", "DDP keeps its own copy of the gradients", "GPU memory", "Kept free (%)",
        "GPUs",
    ]  # fmt: skip
    assert all(control.layout.width.endswith("px") and control.tooltip for control in found)


def test_numbers_out_of_range_become_the_nearest(calculator):
    for value, becomes in ((0, 1), (-3, 1), (5, 4), (10**9, 1024), (float("inf"), 1024)):
        calculator.gpus = value
        assert calculator.gpus == calculator.result.question.world_size == becomes
    for value, becomes in ((-1, 0), (12.6, 13), (99, 40)):
        calculator.reserve = value
        assert calculator.reserve == becomes
    for value, becomes in ((1, 10**8), (7.2e9, 7 * 10**9), (10**15, 10**12)):
        calculator.model = value
        assert calculator.model == becomes


def test_what_is_not_offered_is_refused_in_a_sentence(calculator, controls):
    before = calculator.result
    for attribute, bad, words in (
        (
            "model",
            "Llama-2-8B",
            "model is 'Llama-2-8B', which is not known here; did you mean 'Llama-3-8B' or 'Llama-2-7B'",
        ),
        ("memory", "80", "memory is '80', which is not known here; did you mean '80 GB'"),
        ("recipe", "fp8", "recipe is 'fp8', which is not known here; "),
        ("gpus", "8", "gpus is '8'; give a number"),
        ("reserve", None, "reserve is None; give a number"),
    ):
        with pytest.raises(ValueError, match=words):
            setattr(calculator, attribute, bad)
    with pytest.raises(TraitError):
        controls(calculator)[0].value = "Llama-2-8B"
    assert calculator.result == before


def test_the_bundle_is_live_and_static(calculator):
    bundle = calculator._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == calculator.model_id
    assert bundle["text/plain"] == f"Calculator: {calculator.result.words}"
    assert "107.8 GB in all" in bundle["text/html"]
    assert bundle["image/png"] and size(calculator.image_bytes()) == (WIDTH, HEIGHT)


def test_moving_keeps_nothing(calculator, objects_kept):
    figure = calculator._board.figure
    assert objects_kept(calculator, 60) < 500  # one figure alone is more than a thousand objects
    assert calculator._board.figure is figure
    assert len(figure.axes) == 1 and len(figure.axes[0].collections) == 5


@pytest.mark.long
def test_a_thousand_moves_keep_nothing(calculator, objects_kept):
    assert objects_kept(calculator, 1000) < 1500


def test_a_move_takes_thirty_milliseconds_at_most(calculator):
    """Processor time, which other programs on the machine do not lengthen."""
    times = []
    for gpus in GPUS * 4:
        start = time.process_time()
        calculator.gpus = gpus
        times.append(time.process_time() - start)
    assert statistics.median(times) <= 0.030


def test_infinity_is_the_end_of_the_slider():
    calculator = MemoryCalculator(model=float("inf"), gpus=float("inf"))
    assert (calculator.model, calculator.gpus) == (10**12, 1024)
