"""docs/workshop.md says what is there: minutes, mistakes and what the checks say to them, links, commands."""

import ast
import re

import pytest

from utils.checks.answers import with_helpers
from utils.checks.exercise import exercises_of
from utils.notebooks.answers import load_answers
from utils.notebooks.files import ROOT, read_notebook

TEXT = (ROOT / "docs" / "workshop.md").read_text(encoding="utf-8")
PLANS = re.findall(r"^\| ([^|\n]+) \| (lesson [^|]+) \| (\d+) \|$", TEXT, re.MULTILINE)
MISTAKES = re.findall(r"^\| \[[^\]]+\]\(\.\./(tests/wrong_answers/[^)]+)\) \| \"([^|]+)\" \|$", TEXT, re.MULTILINE)


def minutes_of_lesson(name):
    """As the lesson's head says: all the minutes in its line."""
    (path,) = (ROOT / "notebooks").glob(f"{name}*.ipynb")
    line = next(line for line in read_notebook(path).cells[0].source.splitlines() if line.startswith("**Time:**"))
    return sum(int(number) for number in re.findall(r"\b(\d+)(?= minutes| more| for the)", line))


def minutes_of(part):
    lab = re.fullmatch(r"lab (\d\d): (.+)", part)
    if lab is None:
        return minutes_of_lesson(part.removeprefix("lesson "))
    known = {exercise.name: exercise.minutes for exercise in exercises_of(lab[1])}
    return sum(known[name] for name in lab[2].split(", "))


@pytest.mark.parametrize(("plan", "parts", "minutes"), PLANS, ids=[plan for plan, *_ in PLANS])
def test_the_minutes_of_a_plan_add_up(plan, parts, minutes):
    assert sum(map(minutes_of, parts.split(" · "))) == int(minutes)


@pytest.mark.parametrize("parts", [parts for _, parts, _ in PLANS])
def test_no_exercise_of_a_plan_needs_one_that_is_left_out(parts):
    for lab, names in re.findall(r"lab (\d\d): ([a-z_0-9, ]+)", parts):
        every, chosen = {exercise.name for exercise in exercises_of(lab)}, set(names.strip().split(", "))
        answers = load_answers(lab, "solutions").names
        for name in chosen:
            used = {function.__name__ for function in with_helpers(answers[name])}
            assert used & every <= chosen, (lab, name)


@pytest.mark.parametrize(("file", "words"), MISTAKES, ids=[file.partition("answers/")[2] for file, _ in MISTAKES])
def test_a_mistake_is_there_and_the_check_says_so(file, words):
    """That the check says the docstring is what tests/checks/test_answers.py tries."""
    said = " ".join(ast.get_docstring(ast.parse((ROOT / file).read_text())).split())
    assert words in said


def test_there_are_plans_and_mistakes_of_every_lab():
    assert len(PLANS) >= 4
    assert {file.split("/")[2] for file, _ in MISTAKES} == {f"{lab:02}" for lab in range(1, 9)}


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links and all((ROOT / "docs" / link).exists() for link in links)
    assert "docs/workshop.md" in (ROOT / "README.md").read_text(encoding="utf-8")
