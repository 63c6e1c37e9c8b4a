"""The calculator of hybrid jobs shows what `hybrid_job` says, in every setting, and keeps one figure."""

import pytest

from utils.theory.planner import hybrid_job, placements
from utils.views.figure import WIDTH
from utils.views.planner_units import HEIGHT, UnitQuestion, units_scene, units_words
from utils.views.planner_units_widget import CONTEXTS, MANY_GPUS, UnitCalculator


@pytest.mark.parametrize("name", ["GPT-2", "Llama-3-8B", "Llama-3.1-405B"])
@pytest.mark.parametrize("gpus", [MANY_GPUS[0], MANY_GPUS[-1]])
@pytest.mark.parametrize("context", [CONTEXTS[0], CONTEXTS[-1]])
def test_every_question_can_be_read(readable, name, gpus, context):
    asked = UnitQuestion(name, gpus, 8, 2, context, "H100 80GB", 400, 1024)
    assert 1 <= len(asked.jobs) <= 16
    readable(units_scene(asked), WIDTH, HEIGHT)
    assert " of TP " in units_words(asked)


def test_the_longest_times_stay_in_the_picture(readable):
    for name, gpus, context in (("Llama-3.1-405B", 1024, 8), ("OPT-175B", 8, 1), ("Mistral-Large-123B", 64, 2)):
        sequence = 2048 if name.startswith("OPT") else 131072
        asked = UnitQuestion(name, gpus, 8, 1, context, "A100 40GB", 10, sequence, 64)
        scene = units_scene(asked)
        readable(scene, WIDTH, HEIGHT)
        assert not any("e+" in word.text for word in scene.words) and "e+" not in units_words(asked)


def test_result_is_the_law_for_the_chosen_unit():
    found = UnitCalculator("Llama-3-70B", gpus=64, tensor=8, pipeline=2, network=400, sequences=1).result
    law = hybrid_job("Llama-3-70B", 64, 8, 2, network=400, global_batch=64)
    assert found.chosen.job == law.job and found.chosen.unit_bytes == law.unit_bytes
    assert repr(law) in found.words and "the other way round" in found.words
    assert placements(law)["tensor"] > placements(law)["data"]
    assert found.best is not None and found.best.fits
    bold = [
        word.text
        for word in units_scene(UnitQuestion("Llama-3-70B", 64, 8, 2, 1, "H200", 400, 4096)).words
        if word.bold
    ]
    assert "4 of TP 8 PP 2 CP 1" in bold


def test_what_no_unit_allows_becomes_the_nearest():
    found = UnitCalculator("GPT-2", gpus=8, tensor=8, pipeline=8).result  # 12 heads, and 64 GPUs a unit
    assert found.chosen.job.unit <= 8 and 12 % found.chosen.job.tensor == 0
    assert UnitCalculator("Llama-3.1-405B", gpus=8).result.best is None


def test_moves_redraw_one_figure(controls, objects_kept):
    calculator = UnitCalculator("GPT-2")
    assert len(controls(calculator)) == 9
    before = calculator._image.value
    calculator.gpus, calculator.tensor = 99, 3
    assert calculator._image.value != before and (calculator.gpus, calculator.tensor) == (128, 2)
    assert objects_kept(calculator, 18) < 1500
    with pytest.raises(ValueError, match="gpu"):
        calculator.gpu = "T4"
