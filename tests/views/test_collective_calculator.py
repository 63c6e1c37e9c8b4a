"""The calculator without a browser: set a control, read the result and the picture."""

import math

import numpy as np
import pytest
from traitlets import TraitError

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.traffic import collective_bytes
from utils.theory.units import GiB, KiB, MiB
from utils.views.collective_calculator import SIZES, CollectiveCalculator
from utils.views.collectives import HEIGHT, KINDS
from utils.views.figure import WIDTH
from utils.views.png import size


@pytest.fixture
def calculator():
    made = CollectiveCalculator()
    yield made
    made.close_all()


def test_every_control_changes_the_result_the_words_and_the_picture(calculator, controls):
    kind, ranks, total = controls(calculator)
    for control, value in ((kind, "all_gather"), (ranks, 7), (total, 2 * MiB)):
        before = calculator.result, calculator._words.value, calculator._image.value
        control.value = value
        after = calculator.result, calculator._words.value, calculator._image.value
        assert all(old != new for old, new in zip(before, after, strict=True))
    assert (calculator.result.kind, calculator.result.world_size, calculator.result.total_bytes) == (
        "all_gather", 7, 2 * MiB
    )  # fmt: skip


def test_the_result_is_the_laws(calculator):
    for kind in KINDS:
        calculator.kind = kind
        for ranks in (2, 16):
            calculator.ranks = ranks
            busiest = max(max(rank.sent, rank.received) for rank in calculator.result.traffic)
            assert busiest == collective_bytes(kind, 64 * MiB, ranks)
            assert calculator.result.words in calculator._words.value


def test_the_answers_that_the_lesson_folds_away_are_the_laws():
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/00_ranks_and_collectives.ipynb").cells}
    _, _, answers = cells["00-calculator"].partition("<summary>Answers</summary>")

    def MiB_on(ranks):
        return f"{collective_bytes('all_reduce', 64 * MiB, ranks) / MiB:.0f} MiB"

    assert f"From {MiB_on(8)} to {MiB_on(16)}: by 8 MiB" in answers
    on_two = {kind: collective_bytes(kind, 1, 2) for kind in ("all_reduce", "broadcast", "send")}
    assert set(on_two.values()) == {1.0} and "1.00 S in an all-reduce, a broadcast and a message" in answers
    assert {collective_bytes(kind, 1, 2) for kind in ("all_gather", "reduce_scatter")} == {0.5} and "0.50 S" in answers
    assert f"{collective_bytes('scatter', 1, 4, rank=0):.2f} S. The others send nothing" in answers


def test_every_control_has_a_label_and_a_fixed_width(calculator, controls):
    assert [control.description for control in controls(calculator)] == ["Collective", "Ranks", "S (size)"]
    assert all(control.layout.width.endswith("px") for control in controls(calculator))
    assert (SIZES[0], SIZES[-1], len(SIZES)) == (KiB, GiB, 21)


def test_the_picture_keeps_its_size(calculator):
    for kind, ranks in (("broadcast", 2), ("all_to_all", 16)):
        calculator.kind, calculator.ranks = kind, ranks
        assert size(calculator._image.value) == size(calculator.image_bytes()) == (WIDTH, HEIGHT)


def test_numbers_out_of_range_become_the_nearest(calculator):
    for value, becomes in ((1, 2), (0, 2), (-5, 2), (17, 16), (10**9, 16), (3.4, 3), (math.inf, 16)):
        calculator.ranks = value
        assert calculator.ranks == calculator.result.world_size == becomes
    for value, becomes in ((0, KiB), (-1, KiB), (3 * MiB, 2 * MiB), (100 * GiB, GiB), (65 * MiB, 64 * MiB)):
        calculator.size = value
        assert calculator.size == calculator.result.total_bytes == becomes


def test_what_is_no_number_or_no_collective_is_refused_in_a_sentence(calculator, controls):
    before = calculator.result
    for bad in ("4", None, True, math.nan):
        with pytest.raises(ValueError, match=r"ranks is .*; give a number"):
            calculator.ranks = bad
        with pytest.raises(ValueError, match=r"size is .*; give a number"):
            calculator.size = bad
    with pytest.raises(ValueError, match="did you mean 'all_reduce'"):
        calculator.kind = "allreduce"
    with pytest.raises(TraitError):
        controls(calculator)[0].value = "allreduce"
    assert calculator.result == before


def test_the_bundle_is_live_and_static(calculator):
    bundle = calculator._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == calculator.model_id
    assert bundle["text/plain"] == f"Calculator: {calculator.result.words}"
    assert "every rank 1.50 S (96 MiB)" in bundle["text/html"]
    assert bundle["image/png"]


def test_moving_keeps_nothing(calculator, objects_kept):
    figure = calculator._board.figure
    assert objects_kept(calculator, 60) < 500  # one figure alone is more than a thousand objects
    assert calculator._board.figure is figure
    assert len(figure.axes) == 1 and len(figure.axes[0].collections) == 5


@pytest.mark.long
def test_a_thousand_moves_keep_nothing(calculator, objects_kept):
    assert objects_kept(calculator, 1000) < 1500


def test_infinity_is_the_end_of_the_slider_and_numpys_numbers_count():
    calculator = CollectiveCalculator(ranks=np.int64(8), size=math.inf)
    assert (calculator.ranks, calculator.size) == (8, 2**30)
