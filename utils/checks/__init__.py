"""Judges: whether an answer is right and, if not, which mistake it is.

    check("01.average_gradients", average_gradients)     # a Verdict: not begun, mistake or passed
    if passed("01.average_gradients"):                   # in a cell that uses the answer; else says what it waits for
    scoreboard("01")                                     # how the lab's exercises stand in this session

A verdict is returned, never raised, whatever the learner's code does: in "Run all" an exercise that is not begun says
so and the notebook goes on. Importing this package imports neither torch nor the labs' own checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from utils.checks.scoreboard import Line, Scoreboard
from utils.checks.verdict import Mistake, NotBegun, Verdict

if TYPE_CHECKING:
    from utils.checks.exercise import Exercise

__all__ = ["Mistake", "NotBegun", "Verdict", "check", "passed", "scoreboard"]

_session: dict[str, Verdict] = {}  # the last verdict of each exercise since this kernel started


def check(exercise_id: str, answer: Any = None) -> Verdict:
    """Judge an answer: a function (or, for a script, its text). None and ... mean that there is none yet.

    Learner code runs on fresh ranks under a deadline. Raises UnknownExercise, with the nearest id, for an id that no
    lab has. In a job of several processes rank 0 judges, with the job's ranks, and all get its verdict.
    """
    from utils.checks.exercise import find_exercise
    from utils.runtime import real_job

    exercise = find_exercise(exercise_id)
    job = real_job.current()
    verdict = job.once(f"check({exercise.id!r})", lambda: _judge(exercise, answer)) if job else _judge(exercise, answer)
    _session[exercise.id] = verdict
    return verdict


def _judge(exercise: Exercise, answer: Any) -> Verdict:
    from utils.checks.answers import inspect_answer
    from utils.checks.ranks import one_thread

    try:
        inspect_answer(exercise, answer)
        with one_thread():
            return Verdict("passed", exercise.id, f"verified: {exercise.verify(answer)}")
    except NotBegun as reason:
        return Verdict("not begun", exercise.id, str(reason), exercise.hints)
    except Mistake as mistake:
        return Verdict("mistake", exercise.id, str(mistake), exercise.hints)
    except Exception as error:  # a hole in this suite's own check must not stop the notebook
        return Verdict("mistake", exercise.id, _unforeseen(error), exercise.hints)


def verdicts() -> tuple[Verdict, ...]:
    """The last verdict of each exercise that was checked in this session."""
    return tuple(_session.values())


def passed(*exercise_ids: str) -> bool:
    """True if all these exercises have passed in this session; else prints which ones are waited for.

    For a cell that runs the learner's answers: `if passed("01.train_step"):` lets "Run all" go on without them.
    """
    from utils.checks.exercise import find_exercise

    states = {find_exercise(each).id: _session.get(each) for each in exercise_ids}
    missing = [
        f"{each} ({verdict.state if verdict else 'not checked yet'})"
        for each, verdict in states.items()
        if not (verdict and verdict.passed)
    ]
    if missing:
        print(f"This cell waits for {', '.join(missing)}.")
    return not missing


def scoreboard(lab: str) -> Scoreboard:
    """The exercises of a lab ("01"), each with its last verdict since this kernel started."""
    from utils.checks.exercise import exercises_of

    return Scoreboard(
        lab,
        tuple(
            Line(each.id, each.difficulty, each.minutes, _session[each.id].state if each.id in _session else None)
            for each in exercises_of(lab)
        ),
    )


def _unforeseen(error: Exception) -> str:
    first = str(error).strip().splitlines()
    return (
        "what your function left behind made the check itself fail "
        f"({type(error).__name__}{f': {first[0]}' if first else ''}). Compare with the card; if your answer fits it, "
        "this is a mistake in the suite: please report it."
    )
