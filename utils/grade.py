"""`python -m utils grade PATH …`: how the exercises of submitted labs stand, and which mistakes are frequent."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from utils.notebooks.errors import NotebookError, in_a_line

if TYPE_CHECKING:
    from utils.notebooks.grade import Graded

LONGEST_TIMEOUT = 86_400  # seconds: a day


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a lab's notebook, or a folder of them")
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="seconds for one cell or check (300)")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    parser.epilog = (
        "Runs what was submitted: judge strangers' work in a container. Exit status: 0 if every exercise of every "
        "notebook passed, 1 if not, 2 if nothing could be judged."
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge one notebook after the other; a notebook that cannot be judged is named and passed over."""
    from utils.notebooks.grade import grade
    from utils.notebooks.submission import submissions

    if not 0 < options.timeout <= LONGEST_TIMEOUT:
        return _complain(f"--timeout is {options.timeout:g}; give seconds, above 0 and up to {LONGEST_TIMEOUT}")
    graded = []
    left_out = [_complain(f"{path} holds no notebook") for path in options.paths if _is_empty(path)]
    for path in submissions(options.paths):
        try:
            graded.append(grade(path, options.timeout))
        except NotebookError as error:
            left_out.append(_complain(str(error)))
        except Exception as error:  # one that nobody has foreseen must not cost the others their verdicts
            left_out.append(_complain(f"{path} could not be judged, {type(error).__name__}: {error}"))
        else:
            if not options.json:
                _show(told(graded[-1]))
    if not graded:
        return _complain("there is no lab to judge; name notebooks or folders that hold some")
    if options.json:
        print(json.dumps([as_json(each) for each in graded], indent=2))
    elif len(graded) > 1:
        _show(f"\n{summed_up(graded)}")
    return int(bool(left_out) or any(each.passed < len(each.exercises) for each in graded))


def _is_empty(path: Path) -> bool:
    from utils.notebooks.submission import submissions

    return path.is_dir() and not submissions([path])


def _complain(sentence: str) -> int:
    print(f"python -m utils grade: {in_a_line(sentence)}", file=sys.stderr)
    return 2


def _show(text: str) -> None:
    """Print what a terminal may be unable to show: another encoding than UTF-8 must not end the command."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def told(graded: Graded) -> str:
    """The submission in a line, and a line for each exercise that has not passed."""
    version = ", of another version of the lab" if graded.other_version else ""
    path = in_a_line(str(graded.path))
    lines = [f"{path}: lab {graded.lab}, {graded.passed} of {len(graded.exercises)} passed{version}"]
    lines += [
        f"  {each.state} · {each.exercise_id}: {each.message}" for each in graded.exercises if each.state != "passed"
    ]
    return "\n".join(lines)


def summed_up(every: Sequence[Graded]) -> str:
    """By exercise: how many passed, and the mistake that most have made."""
    lines = []
    for lab in sorted({graded.lab for graded in every}):
        of_lab = [graded.exercises for graded in every if graded.lab == lab]
        lines.append(f"lab {lab}, {len(of_lab)} submission{'s' * (len(of_lab) > 1)}")
        for each in zip(*of_lab, strict=True):
            states = Counter(judged.state for judged in each)
            counts = ", ".join(
                f"{states[state]} {state}" for state in sorted(states, key=lambda state: state != "passed")
            )
            lines.append(f"  {each[0].exercise_id}: {counts}")
            mistakes = Counter(judged.message for judged in each if judged.state == "mistake")
            lines += [f"    {times} x {message}" for message, times in mistakes.most_common(1)]
    return "\n".join(lines)


def as_json(graded: Graded) -> dict:
    """For a program."""
    exercises = [{"id": each.exercise_id, "state": each.state, "message": each.message} for each in graded.exercises]
    return {
        "path": str(graded.path),
        "lab": graded.lab,
        "passed": graded.passed,
        "other_version": graded.other_version,
        "exercises": exercises,
    }
