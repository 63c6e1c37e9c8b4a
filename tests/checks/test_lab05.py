"""Lab 05 as a whole: its instruments see what they claim to see."""

import pytest

from tests.checks.answers import answers_in
from utils import launch
from utils.checks.exercise import exercises_of
from utils.checks.lab05 import life, training
from utils.checks.lab05.models import FROZEN, LIFE, TRAPS, sizes, units
from utils.checks.lab05.watching import Moment
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake
from utils.notebooks.answers import load_answers


def test_wrong_answers_are_many_and_differ():
    wrong = [answer for answer in answers_in("wrong_answers") if answer.exercise_id.startswith("05.")]
    assert len(wrong) >= 16
    assert {answer.exercise_id for answer in wrong} == {e.id for e in exercises_of("05")}


def test_units_are_told_by_their_bytes_and_cut_without_padding():
    assert len(set(sizes())) == len(sizes()) == len(units(LIFE, LIFE.build()))
    assert all(size // 4 % ranks == 0 for size in sizes() for ranks in (2, 4))


def test_frozen_units_are_frozen_whole_and_one_lies_between_others():
    trains = [{p.requires_grad for p in unit.parameters()} for unit in units(FROZEN, FROZEN.build())]
    assert trains == [{False}, {True}, {False}, {True}]
    assert FROZEN in TRAPS


def watched(rank, answer):
    return life.observe_training(answer, lambda label: None)


@pytest.mark.parametrize(("name", "ahead"), [("fsdp", 0), ("prefetch", 1)])
def test_bytes_of_whole_weights_in_each_unit_are_the_formula(name, ahead):
    """Inside a unit it is gathered, and with prefetch the next one; the shards lie beside them, 1/N."""
    answer = load_answers("05", "solutions").names[name]
    last = len(sizes()) - 1
    for each in launch(watched, 2, answer, true_reduce_scatter=True).values:
        seen = [m for m in each.moments if m.unit >= 0]
        assert len(seen) == life.STEPS * 3 * 2 * len(sizes())
        for moment in seen:
            after = moment.unit + (-1 if moment.phase == "backward" else 1)
            wanted = {moment.unit} | ({after} if ahead and 0 <= after <= last else set())
            assert moment.whole == wanted
        assert not any(m.whole for m in each.moments if m.unit < 0)


def seen_with(*moments):
    return [Seen(life.Life(moments), ())]


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
        (Moment("backward", 2, True, frozenset({2, 3}), ()), True, "in the wrong direction"),
        (Moment("evaluation", -1, True, frozenset({4}), ()), True, "an evaluation without gradients is over"),
        (Moment("forward", -1, True, frozenset({4}), ()), True, None),
    ],
)
def test_a_moment_names_what_is_wrong(moment, ahead, diagnosis):
    if diagnosis is None:
        life.judge_life(seen_with(moment), ahead)
    else:
        with pytest.raises(Mistake, match=diagnosis):
            life.judge_life(seen_with(moment), ahead)


def test_the_exam_is_lab_04s_with_units_of_its_own():
    assert training.EXAM.traps == TRAPS
    assert [len(group) for group in training.EXAM.groups(FROZEN)] == [2, 2]
