"""Lab 01 as a whole: its cards say what its checks know, and its solution equals one process for twenty steps."""

import re
import sys
from functools import partial

import pytest
import torch

from utils import launch
from utils.checks import check
from utils.checks.exercise import exercises_of
from utils.checks.lab01 import script, stepping
from utils.checks.lab01.torchrun import run_program
from utils.checks.lab01.traps import GRADIENT_TRAPS
from utils.checks.ranks import run_cases
from utils.checks.verdict import Mistake
from utils.notebooks.answers import load_answers
from utils.notebooks.files import ROOT, read_notebook, tags_of
from utils.notebooks.markers import without_solution

SOLUTION = read_notebook(ROOT / "solutions" / "01_plain_data_parallel.ipynb")


@pytest.fixture(scope="module")
def solved():
    return load_answers("01", "solutions")


@pytest.mark.parametrize("exercise", exercises_of("01"), ids=lambda exercise: exercise.id)
def test_card_stub_and_check_stand_together(exercise):
    at = next(i for i, cell in enumerate(SOLUTION.cells) if f"answer:{exercise.id}" in tags_of(cell))
    card, answer, checked = SOLUTION.cells[at - 1 : at + 2]
    text = " ".join(card.source.split())
    for hint in exercise.hints:
        assert hint in text
    assert f"Difficulty {'●' * exercise.difficulty}{'○' * (5 - exercise.difficulty)} · about {exercise.minutes}" in text
    assert "Help: <code>" in text and f"`passed · {exercise.id}: verified: " in text
    assert len(without_solution(answer.source).splitlines()) <= 25
    assert checked.source == f'check("{exercise.id}", {exercise.name})'
    expected = re.search(r"Expected: `(passed · .*?) …`", text).group(1)
    assert expected in str(checked.outputs[0]["data"]["text/plain"])


def test_minutes_on_the_cards_are_those_of_the_title():
    assert f"about {sum(e.minutes for e in exercises_of('01'))} minutes" in SOLUTION.cells[0].source


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_weights_equal_the_twins_for_twenty_steps(solved, world_size):
    cases = {trap.name: partial(stepping.observe, trap, steps=20) for trap in GRADIENT_TRAPS}
    seen = run_cases(solved.train_step, cases, world_size)
    for trap in GRADIENT_TRAPS:
        twin = stepping.Twin(trap)
        for step in range(20):
            twin.step(stepping.shares(world_size, step))
        wanted = torch.cat([p.detach().flatten() for p in twin.model.parameters()])
        for each in seen[trap.name]:
            got = torch.cat([w.flatten() for w in each.value.weights[-1].values()])
            assert (got - wanted).norm() <= 1e-6 * wanted.norm(), trap.name


@pytest.mark.skipif(sys.platform != "linux", reason="no TCP counters on this system")
@pytest.mark.parametrize("micro_batches", [1, 4])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_a_step_sends_what_the_ring_says_whatever_the_number_of_micro_batches(solved, world_size, micro_batches):
    def one_step(rank):
        torch.manual_seed(0)
        model = torch.nn.Linear(2048, 1024)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batch = torch.ones(1, 2048), torch.ones(1, 1024)
        solved.accumulate(model, optimizer, torch.nn.functional.mse_loss, [batch] * micro_batches)

    size = 4 * (2048 * 1024 + 1024)  # bytes of the gradients, 8.4 MB
    for wire_bytes in launch(one_step, world_size).wire_bytes:
        assert wire_bytes.sent == pytest.approx(2 * (world_size - 1) / world_size * size, rel=0.01)


def test_script_that_is_no_program():
    assert check("01.script", 'print(1)\nraise NotImplementedError("your answer here")').state == "not begun"
    assert check("01.script", "").state == "not begun"
    assert check("01.script", "x = (").message == "line 1 of the program is not Python: '(' was never closed."
    assert check("01.script", 3).message == "the answer is the program's text, not the number 3."


def test_simulated_script_tells_the_mistakes_apart():
    outcomes = [script.simulate(), script.simulate(average=False), script.simulate(broadcast=False)]
    outcomes.append(script.simulate(times=2))
    weights = torch.stack([outcome.weights["weight"] for outcome in outcomes])
    assert torch.pdist(weights.flatten(1)).min() > 1e-3


SCRIPT_MISTAKES = {
    "the gradients are summed": ("parameter.grad /= world_size", "pass"),
    "the gradients are not averaged": ("dist.all_reduce(parameter.grad)\n        parameter.grad /= world_size", "pass"),
    "the ranks start from different weights": ("dist.broadcast(parameter.detach(), src=0)", "pass"),
    "all 2 ranks print": ("    if rank == 0:\n        print", "    print"),
    "not the mean over both ranks": ("    dist.all_reduce(mean_loss)\n", ""),
    "in `weights.pt`, whatever its argument": ("sys.argv[1])", '"weights.pt")'),
    "2 ranks store them": ("if rank == 0:\n    torch.save", "if True:\n    torch.save"),
    "draws new weights from the seed 0": (
        "for parameter in model.parameters():\n    dist.broadcast(parameter.detach(), src=0)",
        "torch.manual_seed(0)\nmodel.reset_parameters()",
    ),
    "Is a collective under `if rank == 0:`?": (
        "        dist.all_reduce(parameter.grad)\n",
        "        if rank == 0:\n            dist.all_reduce(parameter.grad)\n",
    ),
    "without storing the weights": ("torch.save(model.state_dict(), sys.argv[1])", "pass"),
    "is not `model.state_dict()`": ("model.state_dict(), sys", "model.weight.detach(), sys"),
    "AttributeError: 'Linear' object has no attribute 'stat_dict'": ("model.state_dict()", "model.stat_dict()"),
    "prints 4 lines": ("    if rank == 0:\n        print", "    if rank == 0 and step:\n        print"),
    "not those of 5 steps": ("range(5)", "range(4)"),
    "it is the weights that are averaged, after the step": (
        "        dist.all_reduce(parameter.grad)\n        parameter.grad /= world_size\n    optimizer.step()\n",
        "        pass\n    optimizer.step()\n    for parameter in model.parameters():\n"
        "        dist.all_reduce(parameter.data)\n        parameter.data /= world_size\n",
    ),
    "draws its weights from the seed 7 and none are sent": (
        "for parameter in model.parameters():\n    dist.broadcast(parameter.detach(), src=0)",
        "torch.manual_seed(7)\nmodel.reset_parameters()",
    ),
    "the program hangs: rank 0 waits at line 31, `dist.recv(mean_loss, src=1)`; rank 1 waits at line 32": (
        "    dist.all_reduce(mean_loss)\n",
        "    if rank == 0:\n        dist.recv(mean_loss, src=1)\n    dist.all_reduce(mean_loss)\n",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("diagnosis", SCRIPT_MISTAKES)
def test_wrong_script_is_named(solved, diagnosis):
    right, wrong = SCRIPT_MISTAKES[diagnosis]
    assert right in solved.script
    verdict = check("01.script", solved.script.replace(right, wrong))
    assert verdict.state == "mistake" and diagnosis in verdict.message


@pytest.mark.long
def test_script_that_hangs_ends_at_the_deadline_and_leaves_no_process(solved, monkeypatch, tmp_path):
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr("utils.checks.lab01.torchrun.DEADLINE", 25.0)
    with pytest.raises(Mistake, match=r"not over after 25 s: rank 0 waits at line 2, `time.sleep\(1000\)`"):
        run_program("import time\ntime.sleep(1000)\n", tmp_path, 2)
    left = [p for p in psutil.process_iter(["cmdline"]) if "train.py" in (p.info["cmdline"] or [])]
    assert left == []


def test_script_may_end_its_line_with_a_point_without_breaking_the_check(tmp_path):
    assert script._losses("loss 0.1234.\nloss 0.5\n") == [0.5]
    torch.save(torch.nn.Linear(6, 1), tmp_path / "w.pt")
    with pytest.raises(Mistake, match="not the model"):
        script._stored(tmp_path / "w.pt")
