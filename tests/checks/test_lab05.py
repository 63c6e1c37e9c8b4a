"""Lab 05 as a whole: its instruments see what they claim to see."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

from tests.checks.answers import answers_in
from utils import all_gather_single, launch
from utils.checks.exercise import exercises_of
from utils.checks.lab04.training import Case, Trained
from utils.checks.lab05 import accumulating, exam, life, lifecycle, made, rooting, running, splitting, training
from utils.checks.lab05.models import FROZEN, LIFE, NESTED, TRAPS, owned, rooted_units, sizes, units
from utils.checks.lab05.watching import Moment
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake
from utils.notebooks.answers import load_answers
from utils.theory.lifecycle import lifecycle as law_of


def solved(name):
    return load_answers("05", "solutions").names[name]


def test_wrong_answers_are_many_and_differ():
    wrong = [answer for answer in answers_in("wrong_answers") if answer.exercise_id.startswith("05.")]
    assert len(wrong) >= 16
    assert {answer.exercise_id for answer in wrong} == {e.id for e in exercises_of("05")}


def test_each_exercise_has_right_answers_in_three_styles():
    right = [answer.exercise_id for answer in answers_in("right_answers")]
    assert all(right.count(exercise.id) >= 3 for exercise in exercises_of("05"))


def test_units_are_told_by_their_bytes_and_cut_without_padding():
    for each in (sizes(), life.sizes_of(rooting.TRIAL)):
        assert len(set(each)) == len(each) == 5
        assert all(size // 4 % ranks == 0 for size in each for ranks in (2, 4))
    assert len(units(LIFE, LIFE.build())) == 5


def test_frozen_units_are_frozen_whole_and_one_lies_between_others():
    trains = [{p.requires_grad for p in unit.parameters()} for unit in units(FROZEN, FROZEN.build())]
    assert trains == [{False}, {True}, {False}, {True}]
    assert FROZEN in TRAPS


def test_the_rooted_model_is_tied_nested_and_has_a_root():
    built = NESTED.build()
    given = rooted_units(NESTED, built)
    names = {p: name for name, p in built.named_parameters()}
    groups = [[names[p] for p in group] for group in owned(built, given)]
    assert groups[rooting.ROOT] == ["0.weight", "4.bias"] and built[4].weight is built[0].weight
    assert groups[rooting.OUTER] == ["2.own.weight", "2.own.bias"]
    assert groups[rooting.INNER] == ["2.inner.weight", "2.inner.bias"]


def watched(rank, trial, answer):
    with running.resizes_guarded():
        return life.observe_life(trial, answer, lambda label: None)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.rest)])
@pytest.mark.parametrize(("name", "ahead"), [("fsdp", 0), ("prefetch", 1)])
def test_bytes_of_whole_weights_in_each_unit_are_the_formula(name, ahead, ranks):
    """Inside a unit it is gathered, and with prefetch the next one; the shards lie beside them, 1/N."""
    law = law_of([size / 4 for size in sizes()], ranks, forward_prefetch=ahead, backward_prefetch=ahead)
    for each in launch(watched, ranks, life.PLAIN, solved(name), true_reduce_scatter=True).values:
        seen = [m for m in each.moments if m.unit >= 0]
        assert len(seen) == life.STEPS * 3 * 2 * len(sizes())
        for moment in seen:
            phase = "backward" if moment.phase == "backward" else "forward"
            held = law[f"{phase} of {moment.unit} begins"].bytes - law.at_rest
            assert sum(sizes()[unit] for unit in moment.whole) == held
        assert not any(m.whole for m in each.moments if m.unit < 0)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.rest)])
def test_the_root_is_there_from_forward_to_backward_and_nothing_else_longer_than_its_turn(ranks):
    root = rooting.ROOT
    for each in launch(watched, ranks, rooting.TRIAL, solved("root"), true_reduce_scatter=True).values:
        around = {rooting.INNER: {rooting.OUTER}}
        for moment in each.moments:
            if moment.unit >= 0:
                assert moment.whole == {root, moment.unit} | around.get(moment.unit, set())
            else:
                assert moment.whole == ({root} if moment.phase == "forward" else set())


def test_whole_gradients_are_kept_until_the_last_micro_batch():
    whole = sum(sizes())
    for each in launch(watched, 2, accumulating.TRIAL, solved("accumulate"), true_reduce_scatter=True).values:
        ends = [m.kept for m in each.moments if m.phase == "backward" and m.unit < 0]
        assert ends == [whole, whole, 0] * life.STEPS
        assert not any(m.lacking for m in each.moments)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", ["fsdp", "prefetch"])
def test_gradients_are_the_twins_on_so_many_ranks(name, ranks):
    """Also on 4 ranks, with weights that N does not divide."""
    case = Case(FROZEN, "SGD")
    run = launch(observed, ranks, case, solved(name), true_reduce_scatter=True)
    seen = [Seen(value, ()) for value in run.values]
    assert all(isinstance(value, Trained) for value in run.values)
    if ranks == 1:  # nothing is sharded there: only the numbers
        exam.EXAM.judge_missing(case, run.values)
    else:
        exam.EXAM.judge(case, seen)


def observed(rank, case, answer):
    return exam.EXAM.observer(case)(answer, lambda label: None)


def seen_with(*moments, issued=()):
    return [Seen(life.Life(moments), issued)]


INSIDE = {"phase": "forward", "unit": 2, "over": True}


@pytest.mark.parametrize(
    ("moment", "ahead", "diagnosis"),
    [
        (Moment(**INSIDE, whole=frozenset({2}), flying=()), False, None),
        (Moment(**INSIDE, whole=frozenset({2, 3}), flying=(1,)), True, None),
        (Moment(**INSIDE, whole=frozenset({2}), flying=()), True, "the gather of unit 3 is not issued yet"),
        (Moment(**INSIDE, whole=frozenset({2, 3}), flying=()), True, "the prefetch blocks"),
        (Moment(**INSIDE, whole=frozenset({1, 2}), flying=()), False, "unit 1 is gathered, and its own forward"),
        (Moment(**INSIDE, whole=frozenset({2, 4}), flying=()), False, "unit 4 is gathered already"),
        (Moment(**INSIDE, whole=frozenset(range(5)), flying=()), False, "all 5 units are gathered"),
        (Moment("evaluation", -1, True, frozenset({4}), ()), True, "an evaluation without gradients is over"),
        (Moment("forward", -1, True, frozenset({4}), ()), True, None),
    ],
)
def test_a_moment_names_what_is_wrong(moment, ahead, diagnosis):
    if diagnosis is None:
        lifecycle.judge_life(seen_with(moment), ahead)
    else:
        with pytest.raises(Mistake, match=diagnosis):
            lifecycle.judge_life(seen_with(moment), ahead)


def forward_of(unit, *whole, over=True, phase="forward"):
    return Moment(phase, unit, over, frozenset(whole), ())


END = Moment("step", -1, True, frozenset(), ())


@pytest.mark.parametrize(
    ("moments", "diagnosis"),
    [
        ((forward_of(0, 0), forward_of(1, 0, 1), forward_of(2, 2)), "it is freed too late"),
        ((forward_of(0, 0), forward_of(1, 0, 1), END), "it is freed only in the step"),
        ((forward_of(0, 0), forward_of(1, 0, 1)), "Gathered once for all"),
        (
            (
                forward_of(3, 3, phase="backward"),
                forward_of(2, 2, over=False, phase="backward"),
                forward_of(2, 2, 3, phase="backward"),
            ),
            "looked for in the wrong direction",
        ),
    ],
)
def test_what_becomes_of_a_unit_is_told(moments, diagnosis):
    with pytest.raises(Mistake, match=diagnosis):
        lifecycle.judge_life(seen_with(*moments), False)


def test_a_unit_that_computes_without_memory_is_told_from_the_moments():
    with pytest.raises(Mistake, match="during the forward of unit 1 weights are used that have no memory"):
        life.judge_empty(life.Life((forward_of(0, 0), forward_of(1, over=False)), empty="forward"))
    with pytest.raises(Mistake, match="of the root weights are used"):
        life.judge_empty(life.Life((forward_of(4, over=False, phase="evaluation"),), empty="evaluation"), root=4)


def test_a_root_that_was_freed_or_stays_is_told():
    for moment, diagnosis in (
        (Moment("forward", -1, True, frozenset(), ()), "the root is not gathered any more"),
        (Moment("evaluation", -1, True, frozenset({rooting.ROOT}), ()), "no backward will come"),
        (Moment("backward", -1, True, frozenset({rooting.ROOT}), ()), "free it when its gradients are reduced"),
        (forward_of(2, 1, 2), "the root is not gathered"),
        (forward_of(3, 0, 3, rooting.ROOT), "unit 0 is gathered"),
    ):
        with pytest.raises(Mistake, match=diagnosis):
            rooting.judge_root(seen_with(moment))


def started(rank, numbers, before=False):
    return Seen(made.Start(before=before, optimized=numbers), ())


@pytest.mark.parametrize(
    ("numbers", "diagnosis"),
    [(50, None), (51, None), (49, "belongs to no unit"), (60, "sharded twice"), (100, "full parameters")],
)
def test_what_an_optimizer_has_is_counted(numbers, diagnosis):
    seen, groups = [started(rank, numbers) for rank in range(2)], [[nn.Parameter(torch.zeros(100))]]
    if diagnosis is None:
        made.judge_start(seen, groups)
    else:
        with pytest.raises(Mistake, match=diagnosis):
            made.judge_start(seen, groups)
    with pytest.raises(Mistake, match="made before sharding"):
        made.judge_start([started(0, 100, before=True)], groups)


def in_flight(rank, waits):
    """What happens to a buffer that is emptied while a gather writes into it."""
    from utils.checks.waiting import touches_noted

    flat, mine = torch.zeros(8), torch.ones(4)
    with touches_noted(), running.resizes_guarded():
        work = all_gather_single(flat, mine, async_op=True)
        if waits:
            work.wait()
        try:
            flat.untyped_storage().resize_(0)
        except running.StillWritten as error:
            return str(error)
        finally:
            work.wait()
    return flat.untyped_storage().nbytes()


def test_a_storage_is_not_resized_under_a_gather():
    assert launch(in_flight, 2, True, backend="gloo").values == (0, 0)
    assert all("which nobody has waited for" in said for said in launch(in_flight, 2, False, backend="gloo").values)


def emptied():
    flat = torch.ones(8)
    view = flat[2:4]
    flat.untyped_storage().resize_(0)
    return flat, view


@pytest.mark.parametrize(
    "use", [lambda flat, view: view + 1, lambda flat, view: flat.clone(), lambda flat, view: view.copy_(torch.ones(2))]
)
def test_what_has_no_memory_is_not_read_or_written(use):
    flat, view = emptied()
    with pytest.raises(running.Emptied, match="whose storage was emptied"), running._MemoryNeeded():
        use(flat, view)


def test_what_needs_no_memory_goes_on():
    flat, view = emptied()
    with running._MemoryNeeded():
        assert len(torch.zeros_like(flat)) == 8 and view.detach().shape == (2,) and flat.new_ones(3).sum() == 3
        flat.untyped_storage().resize_(32)
        flat.fill_(2)
        assert view.tolist() == [2, 2]


def test_a_learners_error_is_told_from_a_modules():
    text = "def theirs():\n    raise error\n"
    namespace = {"error": running.Emptied("there")}
    exec(compile(text, "/somewhere/else.py", "exec"), namespace)
    with pytest.raises(running.Emptied) as raised:
        namespace["theirs"]()
    assert running.learners(raised.value) == "theirs" and running.is_empty(raised.value)
    assert not running.is_empty(RuntimeError("of another kind"))


def parameters_with_fully_shard(rank):
    """By name: numbers of each shard and whether two users have one weight."""
    model, given = splitting.CASES["a weight tied across two units"]()
    for unit in given:
        fully_shard(unit)
    fully_shard(model)
    return model[1][0].weight is model[2][0].weight


def test_fully_shard_loses_a_tie_across_units_as_the_card_says():
    assert launch(parameters_with_fully_shard, 2, backend="gloo").values == (False, False)


def test_the_exam_is_lab_04s_with_units_of_its_own():
    assert exam.EXAM.traps == TRAPS
    assert [len(group) for group in exam.EXAM.groups(FROZEN)] == [2, 2]
    assert [len(group) for group in rooting.EXAM.groups(NESTED)] == [2, 2, 2, 2, 2]


def test_slices_in_another_order_are_told_from_the_weights():
    before = {"a": torch.arange(4.0), "b": torch.arange(4.0, 8.0)}
    turned = {"a": torch.tensor([4.0, 5.0, 6.0, 7.0]), "b": torch.arange(4.0)}
    model = torch.nn.Sequential()
    case = partial(Case, optimizer="SGD")
    own = exam.UnitExam(exam.STAGE, lambda *_: model, lambda k: k, "", "")
    object.__setattr__(own, "groups", lambda _: [["a", "b"]])
    with pytest.raises(Mistake, match="wrong order, the last rank's first"):
        own._judge_order(case(LIFE), [Trained(weights=(before, turned))] * 2)
    own._judge_order(case(LIFE), [Trained(weights=(before, {n: v + 0.1 for n, v in before.items()}))] * 2)


def test_only_the_last_micro_batch_reduces():
    assert accumulating.MICRO == (False, False, True)
    assert training.FROZEN_CASE.micro_batches == (1, 1)
