"""The bar of model states: what it says is what theory says, and it can be read at every setting."""

from itertools import product

import pytest

from utils.theory.memory import max_parameters, model_states
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.units import GB, GiB
from utils.views.figure import WIDTH
from utils.views.kinds import LOOKS
from utils.views.memory import HEIGHT, Question, memory_picture, memory_scene, memory_words
from utils.views.png import size

LLAMA = PRESETS["Llama-2-7B"].parameters


def question(**change):
    return Question(**{"parameters": 5e9, "memory": 80 * GB, "memory_name": "80 GB", **change})


@pytest.mark.parametrize("parameters", [1e8, 1e9, 5e9, LLAMA, 405853388800, 1e12])
@pytest.mark.parametrize("memory", [(16 * GB, "16 GB"), (80 * GiB, "80 GiB"), (192 * GB, "192 GB")])
def test_words_do_not_overlap_or_leave_the_picture(readable, parameters, memory):
    for recipe, world_size in product(("deepspeed", "sgd", "adam-8bit"), (1, 1024)):
        for reserve, as_view in ((0.0, True), (0.4, False)):
            asked = Question(parameters, *memory, recipe, world_size, reserve, as_view, "Llama-3.1-405B")
            readable(memory_scene(asked), WIDTH, HEIGHT)


def test_the_numbers_are_the_laws():
    for recipe in PRECISION_RECIPES:
        asked = question(recipe=recipe, world_size=8, reserve=0.1, gradient_as_bucket_view=False)
        same = {"recipe": recipe, "gradient_as_bucket_view": False}
        assert asked.states == model_states(5e9, 8, "ddp", **same)
        assert asked.most_parameters == max_parameters(80 * GB, 8, "ddp", reserve=0.1, **same)


def test_segments_are_as_long_as_their_bytes_and_the_line_stands_at_the_memory():
    scene = memory_scene(question())
    widths = {
        look.colour: [b.width for b in scene.boxes if b.height > 20 and look.colour in (b.fill, b.edge)]
        for look in LOOKS.values()
    }
    weights, gradients = widths[LOOKS["weights"].colour][0], widths[LOOKS["gradients"].colour][0]
    master, moments = widths[LOOKS["moments"].colour]
    assert [w / weights for w in (gradients, master, moments)] == pytest.approx([1, 2, 4])
    (line,) = [line for line in scene.lines if line.width == 3]
    assert line.x0 == pytest.approx(16 + 8 * weights)  # 16 B per parameter fill 80 GB with 5e9 parameters


def test_just_fitting_and_just_not():
    assert question().fits and not question(parameters=5e9 + 1).fits
    assert not question(reserve=0.05).fits
    assert "It fits into 80 GB." in memory_words(question())
    assert "It does not fit into 80 GiB = 85.9 GB." in memory_words(
        question(parameters=6e9, memory=80 * GiB, memory_name="80 GiB")
    )


def test_the_words_name_what_is_left_beside_the_reserve():
    asked = question(parameters=22.2e9 / 16, memory=32 * GB, memory_name="32 GB", reserve=0.4)
    assert "It does not fit into the 19.2 GB that are left of 32 GB." in memory_words(asked)


def test_the_words_tell_everything():
    words = memory_words(question(parameters=LLAMA, name="Llama-2-7B", world_size=8, gradient_as_bucket_view=False))
    assert words == (
        "Llama-2-7B, 6,738,415,616 parameters on each of 8 GPUs: weights 13.5 GB, gradients 13.5 GB, master weights 27 "
        "GB, moments 53.9 GB, DDP's buckets 13.5 GB: 121.3 GB in all, 18 B per parameter. It does not fit into 80 GB. "
        "All 8 GPUs hold the same: 970.3 GB for 121.3 GB of numbers. Largest model that fits, before activations: 4.44 "
        "billion parameters."
    )


def test_the_picture_has_its_size():
    assert size(memory_picture(question()).image_bytes()) == (WIDTH, HEIGHT)
