"""The cards of every lab say what its checks know: difficulty, minutes, hints, and the words of a passed check."""

import re

import pytest

from utils.checks.exercise import exercises_of
from utils.notebooks.files import ROOT, read_notebook, tags_of
from utils.notebooks.markers import without_solution

SOLVED = {path.name[:2]: read_notebook(path) for path in sorted((ROOT / "solutions").glob("*.ipynb"))}
EXERCISES = [exercise for lab in SOLVED for exercise in exercises_of(lab)]
STUB_LINES = {"01": 25}  # its script is a whole program; elsewhere 20


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_card_stub_and_check_stand_together(exercise):
    lab = exercise.id[:2]
    cells = SOLVED[lab].cells
    at = next(i for i, cell in enumerate(cells) if f"answer:{exercise.id}" in tags_of(cell))
    card, answer, checked = cells[at - 1 : at + 2]
    text = " ".join(card.source.split())
    for hint in exercise.hints:
        assert hint in text
    assert f"Difficulty {'●' * exercise.difficulty}{'○' * (5 - exercise.difficulty)} · about {exercise.minutes}" in text
    assert "Help: <code>" in text and f"`passed · {exercise.id}: verified: " in text
    assert len(without_solution(answer.source).splitlines()) <= STUB_LINES.get(lab, 20)
    assert checked.source == f'check("{exercise.id}", {exercise.name})'
    expected = re.search(r"Expected: `(passed · .*?) …`", text).group(1)
    assert expected in str(checked.outputs[0]["data"]["text/plain"])


@pytest.mark.parametrize("lab", SOLVED)
def test_minutes_on_the_cards_are_those_of_the_title(lab):
    assert f"about {sum(e.minutes for e in exercises_of(lab))} minutes" in SOLVED[lab].cells[0].source
