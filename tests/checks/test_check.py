"""The framework: three states, and no answer that stops the notebook."""

import functools
import subprocess
import sys

import pytest

from utils.checks import Verdict, check, passed, ranks, scoreboard
from utils.checks.answers import find_stub, is_stub
from utils.checks.exercise import UnknownExercise, exercises_of, find_exercise, lab_names

ID = "01.average_gradients"


def stub(model):
    """What to do."""
    raise NotImplementedError("your answer here")


def stub_with_a_beginning(model):
    parameters = [p for p in model.parameters() if p.grad is not None]
    raise NotImplementedError(f"{len(parameters)}")


def calls_a_stub(model):
    for _ in range(2):
        stub(model)


@functools.lru_cache
def decorated_stub(model):
    raise NotImplementedError


def finished(model):
    if not hasattr(model, "parameters"):
        raise NotImplementedError("another kind of model")
    return model


def test_a_stub_is_seen_before_it_runs(monkeypatch):
    monkeypatch.setattr("utils.checks.lab01.averaging.run_cases", lambda *_: pytest.fail("a stub was run"))
    assert repr(check(ID, stub)) == (
        f"not begun · {ID}: write the body of `stub` in place of its `raise NotImplementedError`."
    )
    assert repr(check(ID, calls_a_stub)) == f"not begun · {ID}: `calls_a_stub` calls `stub`, which is not written yet."
    assert check(ID, functools.partial(stub)).state == "not begun"
    assert check(ID, decorated_stub).state == "not begun"


def test_a_stub_with_a_beginning_is_not_begun_either():
    assert check(ID, stub_with_a_beginning).state == "not begun"


def test_what_is_no_stub():
    assert not is_stub(finished.__code__)
    assert find_stub(finished) is None


def uses_the_name_of_a_stub(model):
    import itertools

    def local(stub):
        return stub

    from json import dumps as stub

    return [itertools.stub, local(stub), lambda: stub]


def test_an_attribute_or_a_local_name_is_no_call_of_a_stub():
    assert find_stub(uses_the_name_of_a_stub) is None


@pytest.mark.parametrize("nothing", [None, ...])
def test_no_answer_is_not_begun(nothing):
    assert repr(check(ID, nothing)).startswith(f"not begun · {ID}: no answer yet")
    assert check(ID).state == "not begun"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "not the number 3"),
        (True, "not the truth value True"),
        ("average", "not a string"),
        (int, "not the class `int`"),
        ([stub], "not a list"),
        (lambda: None, "calls `average_gradients(model)`, and yours takes `()`"),
        (lambda model, group: None, "yours takes `(model, group)`"),
        (lambda *, model: None, "yours takes `(model)`"),
    ],
)
def test_a_wrong_kind_of_answer_is_one_sentence(answer, words):
    verdict = check(ID, answer)
    assert verdict.state == "mistake" and words in verdict.message
    assert "\n" not in verdict.message


def test_generators_and_coroutines_are_named():
    def generator(model):
        yield model

    async def coroutine(model):
        pass

    for answer in (generator, coroutine):
        assert "runs none of its body" in check(ID, answer).message


def test_more_parameters_with_defaults_are_fine():
    assert "nothing is averaged" in check(ID, lambda model, group=None, *rest, **names: None).message


def test_what_an_answer_raises_is_told_with_its_line():
    def answer(model):
        model.paramters()

    message = check(ID, answer).message
    assert message.startswith("your function raises AttributeError: 'Sequential' object has no attribute 'paramters'")
    assert "of `answer`: `model.paramters()`)" in message


def test_an_error_on_one_rank_names_the_rank():
    def answer(model):
        import torch.distributed as dist

        if dist.get_rank() == 2:
            raise ValueError("bad shard")
        dist.barrier()

    assert check(ID, answer).message.startswith("on rank 2 of 4 your function raises ValueError: bad shard (line")


def test_a_loop_without_end_meets_the_deadline(monkeypatch):
    monkeypatch.setattr(ranks, "DEADLINE", 1.5)

    def answer(model):
        while True:
            pass

    message = check(ID, answer).message
    assert message.startswith("a hang, on 4 ranks: the run was not over after 1.5 s")
    assert "of answer" in message


def test_what_cannot_travel_is_a_mistake():
    import threading

    lock = threading.Lock()
    assert check(ID, lambda model: lock.acquire()).message.startswith("the function cannot travel to the ranks")


def test_what_an_answer_prints_is_shown_and_cut(capsys):
    def answer(model):
        for number in range(100):
            print("line", number)

    check(ID, answer)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "[rank 0] line 0"
    assert len(shown) == ranks.LINES_SHOWN + 1 and shown[-1].endswith("more lines that the ranks printed")


def test_a_hole_in_a_check_is_a_verdict_too(monkeypatch):
    def broken(*_):
        raise KeyError("weight")

    exercise = find_exercise("01.shard_indices")
    monkeypatch.setattr("utils.checks.exercise.find_exercise", lambda _: exercise)
    monkeypatch.setattr("utils.checks.lab01.sharding.run_cases", broken)
    verdict = check("01.shard_indices", lambda num_samples, rank, world_size, epoch: [])
    assert verdict.state == "mistake" and "please report it" in verdict.message


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("01.avrage_gradients", "did you mean '01.average_gradients'?"),
        ("average_gradients", "did you mean '01.average_gradients'?"),
        ("11.average_gradients", "did you mean '01.average_gradients'?"),
        ("01.zzz", "; there are 01.shard_indices, "),
        (1, "not by an int"),
    ],
)
def test_an_unknown_exercise_names_the_nearest(wrong, words):
    with pytest.raises(UnknownExercise, match="exercise") as error:
        check(wrong, stub)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_verdict_draws_itself_with_three_hints_folded_into_each_other():
    verdict = check(ID, stub)
    drawn = verdict._repr_html_()
    assert drawn.count("<details>") == 3
    assert drawn.index("Hint 1") < drawn.index("Hint 2") < drawn.index("Hint 3") < drawn.index("</details>")
    assert "<code>stub</code>" in drawn
    assert "<b>a</b>" not in Verdict("mistake", "x", "<b>a</b>")._repr_html_()
    assert "<details>" not in Verdict("passed", ID, "verified: all")._repr_html_()


def test_the_scoreboard_shows_the_last_verdict(monkeypatch, capsys):
    monkeypatch.setattr("utils.checks._session", {})
    check(ID, stub)
    board = scoreboard("01")
    assert repr(board).splitlines()[0] == f"lab 01: 0 of {len(exercises_of('01'))} passed"
    assert [line.state for line in board.lines if line.exercise_id == ID] == ["not begun"]
    assert repr(board).count("not checked yet") == len(exercises_of("01")) - 1
    assert "not checked yet" in board._repr_html_()
    with pytest.raises(UnknownExercise, match="There are no checks for lab '77'"):
        scoreboard("77")
    assert not passed(ID, "01.shard_indices")
    assert capsys.readouterr().out == f"This cell waits for {ID} (not begun), 01.shard_indices (not checked yet).\n"


def test_every_exercise_is_complete():
    for lab in lab_names():
        for exercise in exercises_of(lab):
            assert exercise.id.startswith(f"{lab}.") and exercise.title
            assert 1 <= exercise.difficulty <= 5 and exercise.minutes > 0
            assert len(exercise.hints) == 3 and all(hint[-1] in ".?" for hint in exercise.hints)


def test_importing_the_checks_imports_no_torch():
    code = "import sys, utils.checks, utils.checks.prediction; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
