"""What the three calculators of strategies share: every control works, nothing leaks, nothing overlaps."""

import math
from itertools import cycle

import numpy as np
import pytest
from traitlets import TraitError

from utils.views import fit, moves, peers
from utils.views.figure import WIDTH
from utils.views.fit_calculator import FitCalculator
from utils.views.moves_calculator import MovesCalculator
from utils.views.peers_calculator import PeersCalculator
from utils.views.png import size

KINDS = {FitCalculator: fit, MovesCalculator: moves, PeersCalculator: peers}
NUMBERS = {"gpus": 1024, "shard_size": 1024, "nodes": 1024, "sequence": 131072, "micro_batch": 64, "micro_batches": 16}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def calculator(request):
    made = request.param()
    yield made
    made.close_all()


def height(calculator):
    return KINDS[type(calculator)].HEIGHT


def test_every_control_changes_the_result_the_words_and_the_picture(calculator, controls, offered):
    if isinstance(calculator, PeersCalculator):
        calculator.second = "EleutherAI"  # the sizes of the batch are in this answer
        calculator.stage, calculator.first = 1, "this suite"
    for control in controls(calculator):
        before, values = control.value, list(offered(control))
        results = {(calculator.result.words, calculator._words.value, calculator._image.value)}
        for value in (values[0], values[-1]):
            control.value = value
            results.add((calculator.result.words, calculator._words.value, calculator._image.value))
        for each in zip(*results, strict=True):  # words, words on the page, picture
            assert len(set(each)) == len(results) > 1, control.description
        control.value = before


def test_every_control_has_a_label_a_tooltip_and_a_fixed_width(calculator, controls):
    found = controls(calculator)
    assert all(each.description and each.tooltip and each.layout.width.endswith("px") for each in found)
    assert len(found) == len(calculator._controls) and list(found) == list(calculator._controls)
    assert len({each.description for each in found}) == len(found)


def test_numbers_out_of_range_become_the_nearest(calculator):
    for name, most in NUMBERS.items():
        if hasattr(calculator, name):
            least = {"sequence": 512}.get(name, 1)
            for value, becomes in ((0, least), (-3, least), (10**9, most), (math.inf, most), (np.int64(most), most)):
                setattr(calculator, name, value)
                assert getattr(calculator, name) == becomes


def test_what_is_no_number_or_not_offered_is_refused_in_a_sentence(calculator, controls):
    before = calculator.result
    for name in NUMBERS:
        if hasattr(calculator, name):
            for bad in ("4", None, True, math.nan):
                with pytest.raises(ValueError, match=rf"^{name} is .*; give a number$"):
                    setattr(calculator, name, bad)
    for name in ("model", "recipe", "memory", "recomputation", "precision", "rules", "first", "second"):
        if hasattr(calculator, name):
            for bad in ("Llama-2-8B", 3, None):
                with pytest.raises(ValueError, match=rf"^{name} is .*, which is not known here; ") as caught:
                    setattr(calculator, name, bad)
                assert "\n" not in str(caught.value)
    with pytest.raises(TraitError):
        controls(calculator)[0].value = "Llama-2-8B"
    assert calculator.result == before


def test_the_bundle_is_live_and_static(calculator):
    bundle = calculator._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == calculator.model_id
    assert bundle["text/plain"] == f"Calculator: {calculator.result.words}"
    assert "Llama-2-7B, 6,738,415,616" in bundle["text/html"] or "Llama-2-7B on 8 GPUs" in bundle["text/html"]
    assert bundle["image/png"] and size(calculator.image_bytes()) == (WIDTH, height(calculator))
    assert size(calculator._image.value) == (WIDTH, height(calculator))


def test_moving_keeps_nothing(calculator, objects_kept):
    figure = calculator._board.figure
    assert objects_kept(calculator, 60) < 500  # one figure alone is more than a thousand objects
    assert calculator._board.figure is figure
    assert len(figure.axes) == 1 and len(figure.axes[0].collections) == 5


@pytest.mark.long
def test_a_thousand_moves_keep_nothing(calculator, objects_kept):
    assert objects_kept(calculator, 1000) < 1500


def test_words_do_not_overlap_or_leave_the_picture(calculator, offered, readable, monkeypatch):
    """At both ends and in the middle of each control, from settings that lie far apart."""
    monkeypatch.setattr(type(calculator), "show", lambda self, scene, words: readable(scene, WIDTH, height(self)))
    for model, gpus, place in (("Pythia-14M", 1, 0), ("Llama-3.1-405B", 1024, -1), ("MPT-30b-released", 64, 1)):
        calculator.model, calculator.gpus = model, gpus
        for control in calculator._controls[1:]:
            if control.description not in ("GPUs", "Ranks"):
                control.value = list(offered(control))[place]
        for control in calculator._controls[1:]:
            before, values = control.value, list(offered(control))
            for value in (values[0], values[len(values) // 2], values[-1], before):
                control.value = value


@pytest.mark.long
def test_words_do_not_overlap_whatever_the_setting(calculator, offered, readable, monkeypatch):
    monkeypatch.setattr(type(calculator), "show", lambda self, scene, words: readable(scene, WIDTH, height(self)))
    turns = [(control, cycle(offered(control))) for control in calculator._controls]
    for i in range(3000):
        control, values = turns[i * 7 % len(turns)] if len(turns) % 7 else turns[i % len(turns)]
        control.value = next(values)
