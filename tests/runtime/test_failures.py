"""A failed run tells which rank, which line and which operation; and it tells it soon."""

import linecache
import os
import re
import sys
import time
from itertools import count

import pytest

from utils import launch
from utils.runtime.errors import LaunchError, RankDied, RankFailed, RanksHang

CELL = """\
import ctypes, os, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def helper(x):
    dist.all_reduce(x)

def train(rank, mode):
    x = torch.ones(4)
    helper(x)
    if rank == 2:
        if mode == "raise": raise ValueError("bad shard")
        if mode == "skip": return "left early"
        if mode == "kill": os.kill(os.getpid(), 9)
        if mode == "exit": os._exit(3)
        if mode == "other kind": dist.broadcast(x, src=0)
        if mode == "other size": x = torch.ones(5)
        if mode == "sleep": time.sleep(1000)
        if mode == "hold the lock": ctypes.PyDLL(None).sleep(60)
    if mode == "all raise": raise KeyError("everywhere")
    if mode == "circle":
        dist.recv(x, src=(rank + 1) % 4)
    if mode == "backward":
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        if rank == 2: raise RuntimeError("before the backward pass")
        model(torch.ones(2, 4)).sum().backward()
    helper(x)
"""
_cells = count(1)


def run_cell(mode, timeout=5.0):
    """Run CELL as a notebook would: compiled under a name that is no file, in `__main__`. Returns error and seconds."""
    name = f"ipykernel_1/{next(_cells)}.py"
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(CELL, name, "exec"), namespace)
    start = time.monotonic()
    with pytest.raises(LaunchError) as caught:
        launch(namespace["train"], 4, mode, timeout=timeout)
    return caught.value, time.monotonic() - start


@pytest.fixture(autouse=True, scope="module")
def warm():
    launch(lambda rank: None, 1)


def test_a_rank_that_raises():
    error, seconds = run_cell("raise")
    assert isinstance(error, RankFailed)
    text = str(error)
    assert text.startswith("rank 2 raised ValueError: bad shard\n")
    assert re.search(r'line 11, in train\n +if mode == "raise": raise ValueError\("bad shard"\)', text)
    assert re.search(r"ranks 0, 1, 3 wait in all_reduce #2 \(16 B\) at line 5 of helper .*: dist.all_reduce\(x\)", text)
    assert error.failures[0].kind == "ValueError" and len(error.failures) == 1
    assert "Traceback" in error.failures[0].full_text
    assert seconds < 3


def test_all_ranks_raise_the_same():
    error, _ = run_cell("all raise")
    assert str(error).startswith("ranks 0, 1, 2, 3 raised KeyError: 'everywhere'")
    assert str(error).count("everywhere") == 2  # the message, and the line of source


def test_a_rank_that_returns_early():
    error, seconds = run_cell("skip", timeout=60)
    assert isinstance(error, RanksHang)
    assert "rank 2 has finished" in str(error)
    assert "ranks 0, 1, 3 wait in all_reduce #2 (16 B) at line 5 of helper" in str(error)
    assert seconds < 5, "certain after a moment, not at the deadline"


def test_a_rank_that_is_killed():
    error, seconds = run_cell("kill", timeout=60)
    assert isinstance(error, RankDied)
    assert str(error).startswith("rank 2 was killed by SIGKILL")
    assert error.exit_codes == {2: -9}
    assert seconds < 5


def test_a_rank_that_leaves():
    error, _ = run_cell("exit")
    assert isinstance(error, RankDied)
    assert str(error).startswith("rank 2 left with exit code 3")


@pytest.mark.parametrize(("mode", "says"), [("other kind", "broadcast of 16 B"), ("other size", "of 20 B")])
def test_ranks_that_issue_different_collectives(mode, says):
    error, seconds = run_cell(mode, timeout=60)
    assert isinstance(error, RankFailed)
    assert "RanksDisagree" in str(error) and says in str(error)
    assert "must issue the same collectives in the same order" in str(error)
    assert seconds < 5


def test_ranks_that_wait_for_each_other_in_a_circle():
    error, seconds = run_cell("circle", timeout=60)
    assert isinstance(error, RanksHang)
    assert "rank 0 waits in recv #1 from rank 1 (16 B) at line 21 of train" in str(error)
    assert seconds < 10


def test_a_rank_that_is_late_is_named_at_the_deadline():
    error, seconds = run_cell("sleep", timeout=2)
    assert isinstance(error, RanksHang)
    assert "the run was not over after 2 s (timeout=2)" in str(error)
    assert "rank 2 runs at line 17 of train" in str(error) and "time.sleep(1000)" in str(error)
    assert seconds < 8


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGUSR1")
def test_a_rank_stuck_in_c_is_named_too():
    error, _ = run_cell("hold the lock", timeout=2)
    assert "rank 2 does not answer, stuck outside Python" in str(error)
    assert "line 18 in train" in str(error)


def test_a_failure_before_a_backward_of_ddp():
    error, _ = run_cell("backward")
    assert str(error).startswith("rank 2 raised RuntimeError: before the backward pass")
    assert "ranks 0, 1, 3 wait in all_reduce" in str(error) and ".backward()" in str(error)


def test_a_failure_inside_torch_shows_the_learners_line_and_where_it_was_raised():
    def multiply(rank):
        import torch

        return torch.ones(2, 3) @ torch.ones(2, 3)

    with pytest.raises(RankFailed) as caught:
        launch(multiply, 2)
    assert "torch.ones(2, 3) @ torch.ones(2, 3)" in str(caught.value)
    assert "mat1 and mat2" in str(caught.value)


def test_exit_called_by_the_function_is_a_failure():
    with pytest.raises(RankFailed, match=r"the function called exit\(7\)"):
        launch(lambda rank: sys.exit(7), 2)


def test_a_notebook_shows_the_report_and_no_frames_of_the_launcher():
    error = RankFailed("rank 2 raised ValueError: bad shard")
    assert error._render_traceback_() == ["RankFailed: rank 2 raised ValueError: bad shard"]


def test_a_rank_that_has_delivered_always_leaves():
    """The group destroyed, then a DDP module freed: 15 of 40 such runs hung when ranks left by themselves."""

    def destroy_then_free(rank):
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        model(torch.ones(2, 4)).sum().backward()
        dist.destroy_process_group()
        del model
        return os.getpid()

    for _ in range(8):
        launch(destroy_then_free, 2, timeout=20)
