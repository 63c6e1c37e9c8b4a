"""The calculator of lesson 04, without a browser."""

import re
import statistics
import time
from itertools import product

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.memory import max_parameters, model_states
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.traffic import step_bytes
from utils.theory.units import GB
from utils.views.controls import GPUS, MEMORIES
from utils.views.figure import WIDTH
from utils.views.png import size
from utils.views.zero import HEIGHT, STRATEGY, Question, zero_picture, zero_scene
from utils.views.zero_calculator import ZeroCalculator


@pytest.fixture
def calculator():
    made = ZeroCalculator()
    yield made
    made.close_all()


def test_every_control_changes_the_result_the_words_and_the_picture(calculator, controls):
    values = ("Llama-2-70B", "deepspeed", 3, 8, 4, "141 GB")
    for control, value in zip(controls(calculator), values, strict=True):
        before = calculator.result, calculator._words.value, calculator._image.value
        control.value = value
        after = calculator.result, calculator._words.value, calculator._image.value
        assert all(old != new for old, new in zip(before, after, strict=True)), control.description


def test_the_result_is_the_laws(calculator):
    for name, recipe, stage in zip(PRESETS, PRECISION_RECIPES, (0, 1, 2, 3, 0, 1, 2, 3), strict=False):
        calculator.model, calculator.recipe, calculator.stage, calculator.micro_batches = name, recipe, stage, 3
        psi, result = PRESETS[name].parameters, calculator.result
        used = PRECISION_RECIPES[recipe]
        for states, moved, strategy in zip(result.states, result.traffic, STRATEGY, strict=True):
            assert states == model_states(psi, 64, strategy, recipe=recipe)
            assert moved == step_bytes(
                psi,
                strategy,
                64,
                bytes_per_element=used.computed,
                gradient_bytes_per_element=used.communicated_gradients,
                micro_batches=3,
            )
        assert result.most_parameters == max_parameters(80 * GB, 64, STRATEGY[stage], recipe)


def test_the_papers_case_is_told():
    said = zero_picture(Question("the paper's", 7.5e9, 80 * GB, "80 GB")).alt
    for stage in ("Stage 0 holds 120 GB", "ZeRO-1 holds 31.4 GB", "ZeRO-2 holds 16.6 GB", "ZeRO-3 holds 1.88 GB"):
        assert stage.lower() in said.lower()
    assert "fits into 80 GB" in said and "1 times what stage 0 sends" in said


def test_numbers_out_of_range_become_the_nearest_and_unknown_names_are_refused(calculator):
    calculator.gpus, calculator.stage, calculator.micro_batches = 10**9, 7, -3
    assert (calculator.gpus, calculator.stage, calculator.micro_batches) == (1024, 3, 1)
    for name in ("model", "recipe", "memory"):
        with pytest.raises(ValueError, match="is not known here"):
            setattr(calculator, name, "nothing")


def test_every_setting_can_be_read(readable):
    for name, gpus, recipe, stage, micro_batches, memory in product(
        ("GPT-2", "Llama-3.1-405B"),
        (1, 8, 1024),
        ("zero-paper", "deepspeed", "sgd"),
        (0, 2),
        (1, 16),
        ("16 GB", "80 GiB"),
    ):
        asked = Question(name, PRESETS[name].parameters, MEMORIES[memory], memory, gpus, stage, recipe, micro_batches)
        readable(zero_scene(asked), WIDTH, HEIGHT)


def test_the_picture_has_its_size_and_moving_keeps_nothing(calculator, objects_kept):
    assert size(calculator.image_bytes()) == (WIDTH, HEIGHT)
    assert objects_kept(calculator, 24) < 1000


def test_a_move_takes_thirty_milliseconds_at_most(calculator):
    """Processor time, which other programs on the machine do not lengthen."""
    times = []
    for gpus in GPUS * 4:
        start = time.process_time()
        calculator.gpus = gpus
        times.append(time.process_time() - start)
    assert statistics.median(times) <= 0.030


def test_the_answers_that_the_lesson_folds_away_are_the_laws(calculator):
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/04_zero.ipynb").cells}
    _, _, answers = cells["04-calculator"].partition("<summary>Answers</summary>")

    def ask(**changes):
        for name, value in changes.items():
            setattr(calculator, name, value)
        return calculator.result

    held = [f"{ask(model='Llama-2-70B', gpus=64).states[stage].total / GB:.1f} GB" for stage in (1, 2, 3)]
    assert re.findall(r"[\d.]+ GB", answers.splitlines()[2]) == held
    most = [f"{ask(model='Llama-2-7B', gpus=gpus, stage=2).most_parameters / 1e9:.1f} billion" for gpus in (8, 1024)]
    assert re.findall(r"[\d.]+ billion", answers) == most
    ask(model="Llama-2-7B", gpus=64, micro_batches=8)
    sent = [f"{moved.per_rank / calculator.result.traffic[0].per_rank:g} times" for moved in calculator.result.traffic]
    assert re.findall(r"[\d.]+ times", answers) == sent[1:]
