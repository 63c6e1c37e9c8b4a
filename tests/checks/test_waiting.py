"""Whether an answer waits is noted, not timed; and what is noted does not depend on where the wait stands."""

import math
import sys

import pytest
import torch
import torch.distributed as dist

from utils import launch
from utils.checks import check
from utils.checks.waiting import unwaited

HELPERS = """
import torch.distributed as dist

def start(tensors):
    return [dist.all_reduce(tensor, async_op=True) for tensor in tensors]

def finish(works):
    for work in works:
        work.wait()
"""


@pytest.fixture
def helpers(tmp_path, monkeypatch):
    (tmp_path / "helpers_of_a_learner.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import helpers_of_a_learner

    yield helpers_of_a_learner
    del sys.modules["helpers_of_a_learner"]


def test_helpers_of_an_imported_module_are_judged_alike(helpers):
    def average_gradients(model, waited_for):
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        works = helpers.start(gradients)
        helpers.finish(works[waited_for])
        for gradient in gradients:
            gradient /= dist.get_world_size()

    right = check("01.average_gradients", lambda model: average_gradients(model, slice(None)))
    assert right.state == "passed", right
    wrong = check("01.average_gradients", lambda model: average_gradients(model, slice(1, None)))
    assert "nobody waits for the 1st of 2 all_reduce (line 5: `return [dist.all_reduce(" in wrong.message


def waits_noted(rank):
    x = [torch.ones(4) for _ in range(9)]
    dist.all_reduce(x[0])
    dist.all_reduce(x[1], async_op=True)
    works = [dist.all_reduce(each, async_op=True) for each in x[2:]]
    works[0].wait()
    works[1].get_future().wait()
    torch.futures.wait_all([works[2].get_future(), works[3].get_future().then(lambda done: done.value())])
    while not works[4].is_completed():
        pass
    works[5].get_future()  # having a future is not waiting for it
    if rank == 0:
        dist.isend(x[0], 1)
    else:
        dist.irecv(x[0], 0).wait()
    dist.barrier()


def test_every_way_to_wait_is_noted_and_nothing_else():
    for rank, ops in enumerate(launch(waits_noted, 2).timeline.ops):
        reduced = [op for op in ops if op.kind == "all_reduce"]
        assert all(op.handed_out for op in ops)
        assert [op.waited_at is not None for op in reduced] == [True, False, True, True, True, True, True, False, False]
        assert all(op.waited_at >= op.issued_at for op in reduced if op.waited_at is not None)
        [message] = [op for op in ops if op.kind in ("send", "recv")]
        assert (message.waited_at is not None) == (rank == 1)


def ddp_step(rank):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()


def test_what_ddp_issues_is_not_handed_out():
    ops = [op for op in launch(ddp_step, 2).timeline[0] if op.kind == "all_reduce"]
    assert ops and not any(op.handed_out for op in ops)


def joined_steps(rank):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    with model.join():
        for _ in range(1 + rank):
            model(torch.ones(2, 4)).sum().backward()
    dist.all_reduce(torch.ones(1))


def test_what_torchs_own_python_code_issues_is_internal_and_needs_no_wait():
    for ops in launch(joined_steps, 2).timeline.ops:
        handed_out = [op for op in ops if op.handed_out]
        assert [op.internal for op in handed_out] == [True] * (len(handed_out) - 1) + [False]
        assert len(handed_out) > 1 and unwaited(ops, math.inf) == []
