"""The picture of a dry run and its widget, on runs made here: no process is started."""

import threading
from dataclasses import replace

import pytest

from utils.runtime.dry_run import Call, DryRun, Event, Request
from utils.runtime.dry_run.start import _predict
from utils.theory.breakdown import training_memory
from utils.theory.models import PRESETS
from utils.theory.moments import Moment
from utils.theory.units import GB
from utils.views.bars import gb
from utils.views.calculator import Calculator
from utils.views.dry_run import HEIGHT, dry_run_picture, dry_run_scene, dry_run_words
from utils.views.dry_run_widget import DryRunWidget
from utils.views.figure import WIDTH
from utils.views.kinds import PART_LOOKS
from utils.views.png import size

MODEL = PRESETS["Llama-2-7B"]


def made(layers=32, most=40 * GB, name="Llama-2-7B", recompute=False):
    """A run whose events are made up: activations rise and fall."""
    request = Request(MODEL, name, 64, "fsdp", 64, recompute, 1, 2048, True)
    states = {"weights": 4e8, "gradients": 1e8, "optimizer": 8e8}

    def event(phase, unit, part, share, **more):
        at = Moment("", **states, activations=share * most, **more)
        return Event(phase, unit, part, at, replace(at, gathered=0.0))

    events = [event("forward", f"layers.{i}", "compute", i / layers, gathered=4e8) for i in range(layers)]
    events.append(event("loss", "", "backward", 1.0, logits=2e8))
    events += [event("backward", f"layers.{i}", "compute", i / layers, buffers=1e9) for i in reversed(range(layers))]
    events.append(event("optimizer step", "", "update", 0.0, temporaries=1e7, working=1e6))
    calls = (Call("all_gather", 10**6, 64, 65),)
    return DryRun(request, tuple(events), calls, 1164, *_predict(request), 3.0, 4 * 10**8)


@pytest.mark.parametrize("memory", [None, 20 * GB, 80 * GB, 85 * GB])
@pytest.mark.parametrize("layers", [1, 32, 126])
def test_words_are_readable_and_apart(readable, layers, memory):
    readable(dry_run_scene(made(layers), memory), WIDTH, HEIGHT)


def test_blocks_stay_in_the_plot_and_stack_to_the_total():
    run = made()
    scene = dry_run_scene(run)
    boxes = [box for box in scene.boxes if box.y > 140]
    assert min(box.x for box in boxes) >= 84 and max(box.x + box.width for box in boxes) <= WIDTH - 16
    highest = max(box.height for box in boxes if box.fill == PART_LOOKS["activations"].colour)
    total = max(box.y + box.height for box in boxes) - min(box.y for box in boxes)
    assert highest / total == pytest.approx(40 * GB / run.total, rel=1e-6)


def test_a_dip_between_two_columns_never_hides_the_peak():
    run = made(126)
    low = replace(run.events[-1], largest=Moment(""), last=Moment(""))
    events = tuple(each for event in run.events for each in (event, low, low, low, low))
    tall = dry_run_scene(replace(run, events=events))
    assert min(box.y for box in tall.boxes if box.y > 140) == min(
        box.y for box in dry_run_scene(run).boxes if box.y > 140
    )


def test_the_words_have_the_numbers_and_the_verdict():
    run = made()
    words = dry_run_words(run, 80 * GB)
    assert run.request.title in words and "It fits into 80 GB" in words and "activations 40 GB" in words
    assert f"predicted {run.predicted.total / GB:.1f}" in words
    assert "does not fit into 40 GB" in dry_run_words(run, 40 * GB)
    picture = dry_run_picture(run, 80 * GB)
    assert picture.alt == words and size(picture.image_bytes()) == (WIDTH, HEIGHT)
    assert "<img" in run._repr_mimebundle_()["text/html"]


def test_a_memory_that_is_none_is_refused():
    with pytest.raises(ValueError, match="memory is -1"):
        dry_run_picture(made(), -1)


class Asked:
    """Stands for `dry_run`: reports, and waits at `gate` before it answers."""

    def __init__(self, answer=None):
        self.calls, self.gate, self.answer = [], threading.Event(), answer
        self.reported = threading.Event()

    def __call__(self, model, gpus, progress, **more):
        self.calls.append((model, gpus, more))
        progress(0.4, "forward")
        self.reported.set()
        assert self.gate.wait(20)
        progress(0.9, "backward")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or made(recompute=more["recompute"])


@pytest.fixture
def asked():
    return Asked()


def test_the_prediction_stands_there_before_the_trace(asked):
    widget = DryRunWidget(asked, "Llama-2-70B", 64)
    assert "92.3 GB" in widget._said and "does not fit into 80 GB" in widget._said
    before = widget._said, widget._image.value
    widget.recompute = True
    assert widget._said != before[0] and "fits into 80 GB" in widget._said
    law = training_memory(PRESETS["Llama-2-70B"], 8, "fsdp", 2048, recomputation="full", optimizer_step="for-loop")
    widget.gpus = 8
    assert law.title in widget._said and asked.calls == []
    widget.close_all()


@pytest.mark.parametrize("model", ["Pythia-14M", "Llama-2-70B", "Llama-3.1-405B"])
@pytest.mark.parametrize("gpus", [1, 1024])
def test_what_is_predicted_is_drawn_on_the_same_scale_and_readable(asked, readable, monkeypatch, model, gpus):
    shown = []
    monkeypatch.setattr(DryRunWidget, "show", lambda self, scene, words: shown.append(scene))
    widget = DryRunWidget(asked, model, gpus, strategy="hsdp", shard_size=1)
    readable(shown[-1], WIDTH, HEIGHT)
    words = [word.text for word in shown[-1].words]
    law = training_memory(
        PRESETS[model], gpus, "hsdp", widget.sequence, shard_size=1, optimizer_step="for-loop"
    )  # fmt: skip
    assert law.title in words and f"predicted at most: {gb(law.total)}" in words
    widget.close_all()


def test_the_notebook_goes_on_while_a_trace_runs(asked):
    widget = DryRunWidget(asked, "GPT-2", 8, recompute=True)
    widget._button.click()
    assert asked.reported.wait(20) and widget.busy
    assert (widget._bar.value, widget._doing.value, widget._button.description) == (0.4, "40%: forward", "Stop")
    assert all(control.disabled for control in widget._settings) and widget.settings() >= {"model", "strategy"}
    widget.start()  # a second one does not begin
    asked.gate.set()
    widget.wait(20)
    asked_for = {"strategy": "fsdp", "shard_size": None, "recompute": True, "sequence": 1024}
    assert asked.calls == [("GPT-2", 8, asked_for)]
    assert not widget.busy and widget._bar.value == 1 and not any(each.disabled for each in widget._settings[:-1])
    assert widget._shard_size.disabled  # fsdp has no groups
    assert widget._button.description != "Stop"
    assert widget._said == dry_run_words(widget.run, 80 * GB) and "traced in 3 s" in widget._doing.value
    widget.close_all()


def test_a_trace_can_be_stopped(asked):
    widget = DryRunWidget(asked)
    widget._button.click()
    assert asked.reported.wait(20)
    widget._button.click()
    asked.gate.set()
    widget.wait(20)
    assert widget.run is None and widget._doing.value == "stopped" and not widget.busy
    widget.close_all()


def test_a_failure_is_said(asked):
    asked.answer = RuntimeError("no memory left")
    asked.gate.set()
    widget = DryRunWidget(asked)
    widget.start()
    widget.wait(20)
    assert widget._said == "RuntimeError: no memory left" and widget._doing.value == "failed"
    assert not any(control.disabled for control in widget._settings[:-1])
    widget.close_all()


def test_groups_of_hsdp_that_do_not_fit_are_refused_in_a_sentence_and_others_traced(asked):
    widget = DryRunWidget(asked, "Llama-2-7B", 8, strategy="hsdp", shard_size=16)
    assert not widget._shard_size.disabled
    assert widget._said.startswith("shard_size is 16") and "\n" not in widget._said
    widget.gpus = 64
    law = training_memory(PRESETS["Llama-2-7B"], 64, "hsdp", 2048, shard_size=16, optimizer_step="for-loop")
    assert law.title in widget._said
    asked.gate.set()
    widget.start()
    widget.wait(20)
    assert asked.calls[0][2] == {"strategy": "hsdp", "shard_size": 16, "recompute": False, "sequence": 2048}
    asked.answer = ValueError("no such thing: give another")
    widget.start()
    widget.wait(20)
    assert widget._said == "no such thing: give another" and widget._doing.value == "not traced"
    widget.close_all()


def test_it_can_begin_with_a_run_and_leaves_a_picture(asked):
    run = made()
    widget = DryRunWidget(asked, "Llama-2-7B", 64, run=run)
    assert isinstance(widget, Calculator) and widget._said == dry_run_words(run, 80 * GB)
    bundle = widget._repr_mimebundle_()
    assert run.request.title in bundle["text/plain"] and bundle["image/png"]
    widget.close_all()


@pytest.mark.parametrize(
    ("arguments", "words"), [({"model": "Lama"}, "model is 'Lama'"), ({"memory": "3 GB"}, "memory is '3 GB'")]
)
def test_an_unknown_name_is_refused(asked, arguments, words):
    with pytest.raises(ValueError, match=words):
        DryRunWidget(asked, **arguments)
