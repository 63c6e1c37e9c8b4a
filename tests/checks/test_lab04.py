"""Lab 04 as a whole: its instruments see what they claim to see."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from tests.checks.answers import answers_in
from utils import launch
from utils.checks.exercise import exercises_of
from utils.checks.lab04 import clipping, freeing, gathering, memory, numbers, stages, stepping, training
from utils.checks.lab04.checkpoints import TRAININGS, in_rows, slice_of
from utils.checks.lab04.models import DEEP, SIZES, TRAPS, WEIGHED
from utils.checks.lab04.twin import twin
from utils.checks.verdict import Mistake
from utils.notebooks.answers import load_answers
from utils.runtime.held import Held, unseen
from utils.theory.memory import model_states

EXAMS = {"zero1": stepping.EXAM, "zero2": freeing.EXAM, "zero3": gathering.EXAM}


def test_wrong_answers_are_many_and_differ():
    wrong = [answer for answer in answers_in("wrong_answers") if answer.exercise_id.startswith("04.")]
    assert len(wrong) >= 16
    assert {answer.exercise_id for answer in wrong} == {e.id for e in exercises_of("04")}


def weighed(rank, name, stage):
    """The stage on the weighed model: what one rank saw."""
    return EXAMS[name].observer(stages.WEIGHED_CASE)(stage, lambda label: None)


@pytest.mark.rest
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", EXAMS)
def test_solved_stages_hold_the_formula_to_the_byte(name, ranks):
    """Weights, gradients, masters and moments after the last backward; of the counters 4 B for each slice."""
    stage = load_answers("04", "solutions").names[name]
    psi = sum(p.numel() for p in WEIGHED.build().parameters())
    law = model_states(psi, ranks, name).total + 4 * len(WEIGHED.build())
    for each in launch(weighed, ranks, name, stage, true_reduce_scatter=True).values:
        assert each.samples[-1]["backward"].total == law


def test_padding_is_the_only_thing_beside_the_formula():
    """Buckets whose length N does not divide: each slice is rounded up, and no more."""
    stage = load_answers("04", "solutions").names["zero3"]
    model = replace(SIZES, dtype=torch.bfloat16)
    case = training.Case(model, "small Adam", weighed=True, micro_batches=(1, 1))
    numels = [sum(p.numel() for p in layer.parameters()) for layer in model.layers(model.build())]
    law = sum(16 * -(-numel // 4) + 4 for numel in numels)

    def observed(rank):  # `law`: what is waited for, while the process group still holds what it has carried
        see = partial(training.observe, case, gathering.EXAM.arguments, lambda world_size, step, moment: law)
        return see(stage, lambda label: None)

    run = launch(observed, 4, true_reduce_scatter=True)
    for each in run.values:
        assert each.samples[1]["step"].total == law


def test_everything_that_exists_is_held_whatever_its_name():
    with Held() as held:
        view = torch.zeros(1000)[:1]
        with unseen():
            other = torch.zeros(5000)
        assert held.bytes == 4000
        temporary = torch.ones(2000)
        del temporary
        assert held.bytes == held.at_rest(0) == 4000 and held.peak == 12000
        view.untyped_storage().resize_(0)
        assert held.bytes == 0 and len(other) == 5000
        held.forget_peak()
        with held.paused():
            torch.ones(3000)
        assert held.peak == 0


@pytest.mark.parametrize("thing", [5, None, "model", torch.optim.SGD([torch.zeros(1)], lr=1.0)], ids=repr)
def test_what_nothing_would_be_found_in_is_refused(thing):
    with pytest.raises(TypeError, match=r"^Held is given .*: give those, such as `Held\(model, optimizer.state\)`\.$"):
        Held(thing)


@pytest.mark.parametrize("seconds", [-1, float("nan"), "x", None, True])
def test_looking_for_no_time_is_refused(seconds):
    with Held() as held, pytest.raises(ValueError, match=r"^seconds is .*: give a finite number of at least 0"):
        held.at_rest(seconds)


def test_traps_are_what_their_names_say():
    assert len(TRAPS) == 4 and "tied" in TRAPS[0].name
    assert sum(p.requires_grad for p in TRAPS[1].build().parameters()) < len(list(TRAPS[1].build().parameters()))
    for model in (DEEP, *TRAPS):
        built = model.build()
        in_buckets = [p for bucket in model.buckets(built) for p in bucket]
        assert {id(p) for p in in_buckets} == {id(p) for p in built.parameters() if p.requires_grad}
        if model in (DEEP, SIZES):
            numels = [sum(p.numel() for p in bucket) for bucket in model.buckets(built)]
            assert any(numel % ranks for numel in numels for ranks in (2, 3, 4))


def test_a_summed_gradient_shows_with_sgd_and_a_rounded_master_in_bf16():
    case = stages.WEIGHED_CASE
    right, rounded = twin(case, 2), twin(case, 2, "rounded")
    names = sorted(right.weights[0])
    gone = numbers._distance(right.weights[-1], right.weights[0], names)
    assert numbers._distance(rounded.weights[-1], right.weights[-1], names) > 4 * numbers.FAR_BF16 * gone


@pytest.mark.parametrize(
    ("sample", "diagnosis"),
    [
        ({}, None),
        ({"total": 2.0, "gradients": 1.0}, "whole gradients of about 6 of 6 buckets are still there"),
        ({"total": 2.0}, "keeps a whole storage alive"),
        ({"total": 3.0, "optimizer": 6.0}, "masters and moments take 6.00 S, where 12Ψ/N are 1.50 S"),
        ({"total": 1.0, "master_gradients": 0.5}, "the masters have fp32 gradients"),
    ],
)
def test_bytes_name_what_is_held_too_much(sample, diagnosis):
    law = memory.ZERO2.law(4)
    given = {name: share * memory.WHOLE for name, share in sample.items()}
    total = law + given.pop("total", 0)
    base = training.Sample(total, memory.WHOLE, 0, 0, 0, total, False)
    after = replace(base, **{name: int(size) for name, size in given.items()})
    still = training.Sample(law, memory.WHOLE, 0, 0, 0, law, False)
    none = training.Sample(0, 0, 0, 0, 0, 0, False)
    first = dict.fromkeys(("forward", "backward", "step"), none)  # before its end there are no moments
    seen = [training.Trained(samples=(first, {"forward": still, "backward": after, "step": still}))] * 4
    if diagnosis is None:
        memory.judge_memory(memory.ZERO2, seen)
    else:
        with pytest.raises(Mistake, match=diagnosis):
            memory.judge_memory(memory.ZERO2, seen)


def test_gradients_to_clip_are_above_and_below_the_norm():
    for ranks in (2, 3, 4):
        norms = []
        for step in range(3):
            given = [g for rank in range(ranks) for g in clipping.gradients(rank, ranks, step) if g is not None]
            norms.append(torch.cat(given).norm().item())
        assert norms[0] > clipping.MAX_NORM > norms[1] and norms[2] > clipping.MAX_NORM


def test_slices_of_a_checkpoint_put_together_are_the_whole():
    for each in TRAININGS:
        for ranks in (1, 2, 3, 4):
            for whole in each.masters():
                rows = torch.cat([slice_of(whole, rank, ranks) for rank in range(ranks)])
                assert torch.equal(rows[: len(whole)], whole) and not rows[len(whole) :].any()
                assert torch.equal(in_rows(whole, ranks, lambda rows: rows), whole)
