"""The planner's picture and widget show what `plan` says, in every setting, and keep one figure."""

import pytest

from utils.theory.models import PRESETS
from utils.theory.planner import plan
from utils.views.board import extent
from utils.views.figure import WIDTH
from utils.views.job_calculator import NETWORKS
from utils.views.planner import HEIGHT, MOST_ROWS, chosen_rows, plan_picture, plan_scene, plan_words
from utils.views.planner_widget import PER_NODE, Planner
from utils.views.png import size


@pytest.mark.parametrize("name", ["GPT-2", "Llama-3-8B", "Llama-3.1-405B"])
@pytest.mark.parametrize(("gpus", "on_node"), [(1, 1), (8, 8), (1024, 8), (1024, 1)])
@pytest.mark.parametrize("network", [10, 3200])
def test_every_plan_can_be_read(readable, name, gpus, on_node, network):
    found = plan(name, gpus, on_node, network=network, sequence=1024, global_batch=4 * gpus)
    assert len(chosen_rows(found)) <= MOST_ROWS
    readable(plan_scene(found), WIDTH, HEIGHT)
    words = plan_words(found)
    assert found.recommendation in words and words.count("lacks") >= sum(not row.fits for row in chosen_rows(found))


def test_the_longest_times_stay_in_the_picture(readable):
    for name, sequence in (("Llama-3.1-405B", 131072), ("GPT-3-175B", 2048)):
        found = plan(name, 1024, gpu="A100 40GB", network=10, sequence=sequence, global_batch=65536)
        scene = plan_scene(found)
        readable(scene, WIDTH, HEIGHT)
        assert not any("e+" in word.text for word in scene.words)


def test_no_figure_lies_on_the_line_of_what_may_be_used():
    for memory in range(60, 160, 3):
        scene = plan_scene(plan("Llama-3-8B", 64, memory=memory * 1e9, global_batch=256))
        limit = next(line.x1 for line in scene.lines if line.width == 1.6)
        for word in scene.words:
            if word.text.endswith(" GB") and word.align == "left":
                left, _, right, _ = extent(word)
                assert right < limit or left >= limit + 4, (memory, word.text)


def test_the_recommended_row_is_bold_and_what_does_not_fit_is_empty():
    found = plan("Llama-3-8B", 64, network=100, global_batch=64)
    scene = plan_scene(found)
    bold = [word.text for word in scene.words if word.bold]
    assert "HSDP 8" in bold and "DDP, recomputing" not in bold
    lacking = sum(not row.fits for row in chosen_rows(found))
    assert lacking and sum(word.text == "does not fit" for word in scene.words) == lacking
    assert size(plan_picture(found).image_bytes()) == (WIDTH, HEIGHT)


def test_the_widget_shows_the_plan():
    planner = Planner("Llama-3-8B", gpus=64, network=100, sequences=1)
    law = plan("Llama-3-8B", 64, network=100, global_batch=64)
    assert planner.result.plan.best == law.best and law.recommendation in planner.result.words
    assert planner.result.words in repr(planner)
    planner.network = 3000
    assert planner.network == 3200 and planner.result.plan.ask.network == 3200
    bundle = planner._repr_mimebundle_()
    assert bundle["image/png"] and law.ask.name in bundle["text/plain"]


def test_moves_redraw_one_figure(controls, objects_kept):
    planner = Planner("GPT-2")
    assert len(controls(planner)) == 7
    before = planner._image.value
    planner.gpus, planner.gpus_per_node = 3, 99
    assert planner._image.value != before
    assert (planner.gpus, planner.gpus_per_node, planner.result.plan.ask.nodes) == (2, 8, 1)
    assert planner.result.plan.ask.sequence == PRESETS["GPT-2"].learned_positions
    assert objects_kept(planner, 14) < 500
    for name, wrong in (("model", "Lama"), ("gpu", "T4")):
        with pytest.raises(ValueError, match=name):
            setattr(planner, name, wrong)
    with pytest.raises(AttributeError, match="setting of a Planner"):
        planner.netwrok = 100


def test_offers_are_whole_nodes():
    assert all(gpus % min(each, gpus) == 0 for gpus in (1, 2, 64, 1024) for each in PER_NODE)
    assert list(NETWORKS) == sorted(NETWORKS)
