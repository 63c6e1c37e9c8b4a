"""Wrong answers are rejected, each by the name of its own mistake; right ones pass, whatever their style."""

import subprocess
import sys

import pytest

from tests.checks.answers import answers_in
from utils.checks.exercise import exercises_of, lab_names

WRONG, RIGHT = answers_in("wrong_answers"), answers_in("right_answers")
# Judging all of them takes longer than `make test` may: it takes one in so many, `make test-answers` the others.
ONE_IN = {"wrong": 30, "right": 24}


def shared_out(answers, one_in):
    """The same answers, all but one in `one_in` marked `answers`."""
    return [
        pytest.param(answer, marks=pytest.mark.answers if place % one_in else (), id=str(answer))
        for place, answer in enumerate(answers)
    ]


@pytest.mark.parametrize("answer", shared_out(WRONG, ONE_IN["wrong"]))
def test_wrong_answer_is_named(answer):
    verdict = answer.judged()
    assert verdict.state == "mistake"
    assert answer.docstring in verdict.message
    assert "report it" not in verdict.message, "the check itself failed"


@pytest.mark.parametrize("answer", shared_out(RIGHT, ONE_IN["right"]))
def test_right_answer_passes(answer):
    assert answer.judged().state == "passed", answer.judged()


def test_every_function_has_wrong_answers_and_right_ones_in_several_styles():
    wrong, right = {answer.exercise_id for answer in WRONG}, {answer.exercise_id for answer in RIGHT}
    functions = {e.id for lab in lab_names() for e in exercises_of(lab) if e.wants == "function"}
    assert functions <= wrong
    assert functions <= right
    assert all(answer.docstring for answer in WRONG)


@pytest.fixture
def busy_core():
    """Another process that keeps one core busy."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    busy.kill()
    busy.wait()


@pytest.mark.long
@pytest.mark.parametrize("answer", [*WRONG, *RIGHT], ids=str)
def test_a_verdict_is_the_same_every_time(answer, busy_core):
    assert len({repr(answer.judged()) for _ in range(20)}) == 1
