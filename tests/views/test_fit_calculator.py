"""Does it fit: the bars are what theory says, and the words tell what the bars show."""

import pytest

from utils.theory.breakdown import training_memory
from utils.theory.memory import STRATEGIES, model_states
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.units import GB, GiB
from utils.views.controls import MEMORIES
from utils.views.figure import WIDTH
from utils.views.fit import HEIGHT, Question, fit_picture, fit_scene, fit_words
from utils.views.fit_calculator import FitCalculator
from utils.views.kinds import ACTIVATION, PART_LOOKS
from utils.views.png import size

LLAMA = PRESETS["Llama-2-70B"]


def question(**change):
    return Question(**{"name": "Llama-2-70B", "model": LLAMA, "memory": 80 * GB, "memory_name": "80 GB", **change})


@pytest.fixture
def calculator():
    made = FitCalculator()
    yield made
    made.close_all()


def test_the_result_is_the_laws(calculator):
    calculator.model, calculator.gpus, calculator.sequence = "Llama-2-70B", 64, 4096
    for recipe in PRECISION_RECIPES:
        calculator.recipe = recipe
        for strategy in STRATEGIES:
            shard_size, wide = 8 if strategy == "hsdp" else None, recipe in ("fp32", "sgd", "sgd-momentum")
            said = training_memory(
                LLAMA, 64, strategy, 4096, shard_size=shard_size, recipe=recipe, element_bytes=4 if wide else 2
            )
            assert calculator.result.totals[strategy] == said.total
    calculator.recipe = "usual"
    for strategy in ("fsdp", "zero3", "ddp"):
        assert calculator.result.totals[strategy] == training_memory(LLAMA, 64, strategy, 4096).total
    calculator.activations = False
    states = model_states(LLAMA.parameters, 64, "hsdp", 8, "sgd-momentum")
    calculator.recipe = "sgd-momentum"
    assert calculator.result.totals["hsdp"] == pytest.approx(states.total)


def test_what_fits_is_what_is_not_above_the_line(calculator):
    for memory, size_ in MEMORIES.items():
        calculator.memory = memory
        result = calculator.result
        assert set(result.fitting) == {s for s, total in result.totals.items() if total <= size_}
        assert result.words.replace("'", "&#x27;") in calculator._words.value


def test_a_shard_group_is_never_larger_than_all_gpus(calculator):
    calculator.gpus, calculator.shard_size = 4, 64
    assert calculator.result.question.shard_size == 4
    assert calculator.result.totals["hsdp"] == calculator.result.totals["fsdp"]


def test_the_batch_cannot_be_chosen_without_activations(calculator):
    calculator.activations = False
    assert all(control.disabled for control in calculator._controls[-3:])
    calculator.activations = True
    assert not any(control.disabled for control in calculator._controls)


def test_segments_are_as_long_as_their_bytes_and_long_bars_are_torn():
    asked = question(world_size=64)
    scene = fit_scene(asked)
    (line,) = [line for line in scene.lines if line.width == 3 and line.x0 == line.x1]
    scale = (line.x0 - 104) / (80 * GB)
    widths = [box.width for box in scene.boxes if box.fill == ACTIVATION.colour and box.height > 15]
    for strategy in ("zero3", "fsdp"):
        assert any(width == pytest.approx(asked.parts[strategy]["activations"] * scale) for width in widths)
    torn = [line for line in scene.lines if line.width == 3 and line.x0 != line.x1]
    assert len(torn) == 2 * sum(total * scale > 556 for total in asked.totals.values()) > 0
    assert max(box.x + box.width for box in scene.boxes) <= 104 + 556 + 1e-6


def test_the_words_tell_what_fits():
    text = fit_words(question(world_size=64, recomputation="full"))
    assert text.startswith("Llama-2-70B, 68,976,648,192 parameters, on each of 64 GPUs.")
    assert "1 x 2,048 tokens, full recomputation." in text and text.endswith("zero3, fsdp fit into 80 GB.")
    assert "Nothing fits into 80 GB." in fit_words(question(world_size=64))
    alone = fit_words(question(world_size=64, with_activations=False, memory=80 * GiB, memory_name="80 GiB"))
    assert "else as zero-paper. Model states alone." in alone and "fit into 80 GiB = 85.9 GB." in alone


def test_every_part_has_a_look():
    parts = training_memory(LLAMA, 8, "fsdp", 2048).parts
    assert set(PART_LOOKS) == set(parts)


def test_the_picture_has_its_size():
    assert size(fit_picture(question()).image_bytes()) == (WIDTH, HEIGHT)


def test_a_sequence_is_no_longer_than_the_learned_positions(calculator):
    calculator.model, calculator.sequence = "GPT-2", 4096
    assert calculator.result.question.sequence == 1024 and "1,024" in calculator.result.words
