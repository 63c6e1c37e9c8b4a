"""The calculator of lesson 06 shows what the laws say, in every setting, and keeps one figure."""

import re

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.hybrid import hybrid, shard_sizes
from utils.theory.links import LINKS
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.theory.units import GB
from utils.views.figure import WIDTH
from utils.views.hybrid import HEIGHT, Question, hybrid_scene, hybrid_words
from utils.views.hybrid_calculator import ACROSS, INSIDE, NODES, PER_NODE, HybridCalculator


def question(name="Llama-2-7B", nodes=8, on_node=8, shard_size=8, across="InfiniBand NDR", memory=80 * GB):
    return Question(name, nodes, on_node, shard_size, LINKS["NVLink 4"], LINKS[across], memory, "80 GB")


def test_result_is_the_law_for_the_chosen_group():
    found = HybridCalculator("Llama-2-7B", nodes=8, shard_size=8).result
    law = hybrid(PRESETS["Llama-2-7B"], 8, 8, 8, Link(450e9, 5e-6), Link(50e9, 10e-6), memory=80 * GB, sequence=4096)
    assert found.chosen == law
    assert [choice.shard_size for choice in found.choices] == shard_sizes(8, 8)
    assert found.best.shard_size == 8 and "No group that fits is faster" in found.words
    assert f"{law.traffic.across / GB:.3g} GB across" in found.words


def test_what_does_not_fit_says_so_and_what_would():
    words = HybridCalculator("Llama-2-70B", nodes=16, shard_size=8).result.words
    assert "which does not fit 80 GB" in words and "the memory of a GPU: it does not fit" in words
    assert "The fastest that fits: groups of" in words
    alone = HybridCalculator("Llama-2-70B", nodes=2, gpus_per_node=1, memory="16 GB").result
    assert alone.best is None and "No group fits." in alone.words


@pytest.mark.parametrize("name", ["GPT-2", "Llama-2-7B", "Llama-3.1-405B"])
@pytest.mark.parametrize(("nodes", "on_node"), [(2, 1), (2, 8), (128, 8)])
def test_every_size_can_be_read(readable, name, nodes, on_node):
    asked = question(name, nodes, on_node, shard_size=1)
    readable(hybrid_scene(asked), WIDTH, HEIGHT)
    assert hybrid_words(asked)


def test_a_chosen_row_is_bold_and_what_does_not_fit_is_empty():
    scene = hybrid_scene(question(shard_size=8))
    bold = [word.text for word in scene.words if word.bold]
    assert "HSDP 8" in bold and "DDP 1" not in bold
    assert sum(word.text == "does not fit" for word in scene.words) == 1


def test_moves_redraw_one_figure(controls, objects_kept):
    calculator = HybridCalculator("GPT-2")
    assert len(controls(calculator)) == 7
    before = calculator._image.value
    calculator.shard_size, calculator.nodes, calculator.gpus_per_node = 1000, 3, 99
    assert calculator._image.value != before
    assert (calculator.nodes, calculator.gpus_per_node, calculator.result.chosen.shard_size) == (2, 8, 16)
    assert objects_kept(calculator, 14) < 500
    with pytest.raises(ValueError, match="across"):
        calculator.across = "string"


def test_offers_are_known_links_and_whole_numbers():
    assert set(INSIDE) | set(ACROSS) <= set(LINKS)
    assert max(NODES) * max(PER_NODE) == 1024


def test_the_answers_that_the_lesson_folds_away_are_the_laws():
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/06_hsdp.ipynb").cells}
    _, _, answers = cells["06-choice-says"].partition("<summary>Answers</summary>")
    said = [float(each) for each in re.findall(r"([\d.]+) (?:GB|s\b)", answers)]
    eight, all_gpus, ethernet, two = (
        HybridCalculator(**{"shard_size": 8, **changes}).result.chosen
        for changes in ({}, {"shard_size": 64}, {"across": "Ethernet 100G"}, {"shard_size": 2})
    )
    law = [eight.memory / GB, eight.traffic.across / GB, all_gpus.memory / GB, all_gpus.traffic.across / GB]
    law += [all_gpus.seconds, eight.seconds, ethernet.seconds, two.memory / GB, two.traffic.across / GB, two.seconds]
    assert said == [float(f"{each:.3g}") for each in law]
    assert ethernet.binds == "across" and two.seconds > eight.seconds
    choices = HybridCalculator("Llama-2-70B", nodes=16).result.choices
    fastest = HybridCalculator("Llama-2-70B", nodes=128).result.best
    smallest = next(choice for choice in choices if choice.fits)
    assert f"Groups of {smallest.shard_size}. On 128 nodes groups of {fastest.shard_size}:" in answers
