"""Lab 01 as a whole: its solution equals one process for twenty steps."""

import sys
from functools import partial

import pytest
import torch

from utils import launch
from utils.checks import check
from utils.checks.lab01 import script, script_steps, stepping
from utils.checks.lab01.torchrun import run_program
from utils.checks.lab01.traps import GRADIENT_TRAPS
from utils.checks.ranks import run_cases
from utils.checks.verdict import Mistake
from utils.notebooks.answers import load_answers


@pytest.fixture(scope="module")
def solved():
    return load_answers("01", "solutions")


@pytest.mark.parametrize("world_size", [2, 3, pytest.param(4, marks=pytest.mark.rest)])
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


def test_script_twin_is_torch_itself():
    """The check computes the program's steps by hand; here one process takes them with torch's own model and SGD."""
    alone, samples = script_steps.train_alone(), [script_steps.samples_of(rank) for rank in range(2)]
    model = torch.nn.Linear(6, 1)
    for parameter, drawn in zip(model.parameters(), script_steps.drawn(0), strict=True):
        parameter.data = drawn
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for wanted in alone.losses:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(
            model(torch.cat([x for x, _ in samples])), torch.cat([y for _, y in samples])
        )
        loss.backward()
        optimizer.step()
        assert loss.item() == pytest.approx(wanted, rel=1e-5)
    assert script_steps.same([p.detach() for p in model.parameters()], alone.weights[-1])


BROADCAST = "for parameter in model.parameters():\n    dist.broadcast(parameter.detach(), src=0)"
AVERAGE = """    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size
"""
LOOP = "for step in range(5):"
BOTH_ALONE = """    for _ in range(5):
        optimizer.zero_grad()
        loss = mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    torch.save(model.state_dict(), sys.argv[1])
"""
GATHERED = """everything = [None] * world_size
dist.all_gather_object(everything, (inputs, targets))
inputs, targets = map(torch.cat, zip(*everything))
"""
DRAWN_AGAIN = """shards = []
for other in range(world_size):
    again = torch.Generator().manual_seed(100 + other)
    shards.append((torch.randn(24, 6, generator=again), torch.randn(24, 1, generator=again)))
inputs, targets = map(torch.cat, zip(*shards))
"""


def alone_on_rank_0(first):
    """A change of the program: `first`, then only rank 0 trains."""
    return LOOP, f"{first}if rank == 0:\n{BOTH_ALONE}for step in []:"


SCRIPT_MISTAKES = {
    "the gradients are summed": ("parameter.grad /= world_size", "pass"),
    "the gradients are not averaged": ("dist.all_reduce(parameter.grad)\n        parameter.grad /= world_size", "pass"),
    "the ranks start from different weights": ("dist.broadcast(parameter.detach(), src=0)", "pass"),
    "all 2 ranks print": ("    if rank == 0:\n        print", "    print"),
    "not the mean over both ranks": ("    dist.all_reduce(mean_loss)\n", ""),
    "in `weights.pt`, whatever its argument": ("sys.argv[1])", '"weights.pt")'),
    "2 ranks store them": ("if rank == 0:\n    torch.save", "if True:\n    torch.save"),
    "draws its weights from the seed 0 and none are sent": (
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
    "nobody waits for broadcast (line 20": (BROADCAST, BROADCAST.replace("src=0", "src=0, async_op=True")),
    "nobody waits for all_reduce (line 27": (
        "dist.all_reduce(parameter.grad)\n        parameter.grad /= world_size",
        "parameter.grad /= world_size\n        dist.all_reduce(parameter.grad, async_op=True)",
    ),
    "uses the tensor of broadcast (line 19": (
        BROADCAST,
        "sent = [dist.broadcast(p.detach(), src=0, async_op=True) for p in model.parameters()]\n"
        "model(inputs)\nfor each in sent:\n    each.wait()",
    ),
    "draws its weights from the seed 7": (
        BROADCAST,
        "again = torch.Generator().manual_seed(7)\nfor parameter in model.parameters():\n"
        "    nn.init.uniform_(parameter, -(6**-0.5), 6**-0.5, generator=again)",
    ),
    "the weights that rank 0 has drawn are lost before the first step, every rank starts from the same": (
        BROADCAST,
        "for parameter in model.parameters():\n    nn.init.constant_(parameter, 0.1)\n" + BROADCAST,
    ),
    "every rank starts from the mean of the ranks' weights": (
        BROADCAST,
        "for parameter in model.parameters():\n    dist.all_reduce(parameter.detach())\n    parameter.detach().div_(2)",
    ),
    "every rank starts from rank 1's weights": (BROADCAST, BROADCAST.replace("src=0", "src=1")),
    "only one of weight and bias is sent": (BROADCAST, "dist.broadcast(model.weight.detach(), src=0)"),
    "is called 5 times on rank 0, 0 times on rank 1: every rank": alone_on_rank_0(GATHERED),
    "is called 5 times on rank 0, 0 times on rank 1": alone_on_rank_0(DRAWN_AGAIN),
    "rank 0 runs 48 samples through the model in a step": (LOOP, GATHERED + LOOP),
    "the gradients are not the mean over both ranks": (LOOP, DRAWN_AGAIN + LOOP),
    "`optimizer.zero_grad()` is missing": ("    optimizer.zero_grad()\n", ""),
    "To average the weights at the end is not the same": (
        AVERAGE + "    optimizer.step()\n",
        "    optimizer.step()\n    if step == 4:\n        for parameter in model.parameters():\n"
        "            dist.all_reduce(parameter.data)\n            parameter.data /= world_size\n",
    ),
    "is called 6 times on each rank": ("range(5)", "range(6)"),
    "a smaller learning rate hides that": (
        AVERAGE,
        AVERAGE.replace("        parameter.grad /= world_size\n", "") + "    optimizer.param_groups[0]['lr'] = 0.05\n",
    ),
    "not those of SGD with lr=0.1": (
        "dist.init_process_group",
        "optimizer = torch.optim.Adam(model.parameters())\ndist.init_process_group",
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


RIGHT_SCRIPTS = {
    "torch's DDP": (
        BROADCAST,
        "wrapped = nn.parallel.DistributedDataParallel(model)",
        [("mse_loss(model(", "mse_loss(wrapped("), (AVERAGE, "")],
    ),
    "collectives waited for at the end, and a remark": (
        AVERAGE,
        "    works = [dist.all_reduce(p.grad.div_(world_size), async_op=True) for p in model.parameters()]\n"
        "    for work in works:\n        work.wait()\n",
        [(LOOP, "print('starting')\n" + LOOP)],
    ),
    "weights sent as an object, and left by os._exit": (
        BROADCAST,
        "box = [model.state_dict()]\ndist.broadcast_object_list(box, src=0)\nmodel.load_state_dict(box[0])",
        [("dist.destroy_process_group()", "sys.stdout.flush()\nos._exit(0)")],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("style", RIGHT_SCRIPTS)
def test_right_script_passes(solved, style):
    text, (right, other, more) = solved.script, RIGHT_SCRIPTS[style]
    for old, new in [(right, other), *more]:
        assert old in text
        text = text.replace(old, new)
    assert check("01.script", text).state == "passed", check("01.script", text)


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
