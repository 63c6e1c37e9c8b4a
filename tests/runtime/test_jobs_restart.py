"""A killed rank, a restart by torch's agent, and what is lost."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from benchmarks.restarts import train
from utils import launch
from utils.runtime.errors import RankDied, RankFailed, RanksHang
from utils.runtime.jobs import faults
from utils.runtime.jobs.checkpoints import load, save
from utils.runtime.jobs.faults import Journal, Kill, reached, read_journal
from utils.runtime.jobs.restart import Restarted, run_with_restarts


def test_a_killed_rank_loses_at_most_the_steps_since_the_checkpoint(tmp_path):
    undisturbed = launch(train, 2, tmp_path, 12, 4).values  # without an agent: the same arithmetic
    run = run_with_restarts(train, 2, 12, 4, kill=Kill(rank=1, step=7))
    assert run.values == undisturbed
    assert (run.lost, run.attempts) == (3, 2)  # steps 4, 5 and 6, after the checkpoint of four steps
    for journal in run.steps:
        assert [step for attempt, step in journal if attempt == 1] == list(range(4, 12))


@pytest.mark.rest
def test_a_rank_killed_in_the_writing_of_a_checkpoint_leaves_the_one_before(tmp_path):
    undisturbed = launch(train, 2, tmp_path, 12, 4).values
    run = run_with_restarts(train, 2, 12, 4, kill=Kill(rank=0, step=6, saving=True))
    assert run.values == undisturbed and (run.lost, run.attempts) == (4, 2)


@pytest.mark.rest
def test_what_is_sent_to_another_rank_is_no_checkpoint():
    def sending(rank, folder):
        reached(1)
        sent = [None, None]
        torch.distributed.all_gather_object(sent, torch.full((1,), float(rank)))
        stored = folder / "checkpoint"
        if rank == 0 and not stored.exists():
            torch.save(sent, stored)
        torch.distributed.barrier()
        return sum(sent).item(), stored.exists()

    run = run_with_restarts(sending, 2, kill=Kill(rank=0, step=1, saving=True))
    assert run.values == ((1.0, True), (1.0, True)) and run.attempts == 2


@pytest.mark.rest
def test_without_a_restart_left_the_job_ends_with_who_died():
    with pytest.raises(
        RankDied, match=r"a rank was killed by SIGKILL, and no restart is left \(max_restarts=0\): rank 0"
    ):
        run_with_restarts(train, 2, 12, 4, max_restarts=0, kill=Kill(1, 7))


@pytest.mark.rest
def test_an_error_is_the_ranks_own():
    def bad(rank, folder):
        torch.distributed.barrier()
        if rank == 1:
            raise KeyError("a bad shard")
        torch.distributed.barrier()

    with pytest.raises(RankFailed, match="rank 1 raised KeyError: 'a bad shard' in attempt 0"):
        run_with_restarts(bad, 2, max_restarts=0)


@pytest.mark.long
def test_a_deadline_leaves_no_process():
    def waits(rank, folder):
        reached(3)
        if rank == 0:
            time.sleep(1000)

    before = set(psutil.pids())
    with pytest.raises(RanksHang, match="is not over after 40 s: rank 0 has done 3 steps"):
        run_with_restarts(waits, 2, timeout=40)
    mine = [p for p in psutil.process_iter(["cmdline"]) if p.pid not in before and "main.py" in str(p.info["cmdline"])]
    assert not [p for p in mine if any("job-" in part for part in p.info["cmdline"] or ())]


def test_what_is_lost_is_counted_in_the_journals():
    journals = (((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 1), (2, 2)), ((0, 0), (0, 1), (1, 0), (2, 1)))
    run = Restarted((None, None), journals, 1.0)
    assert run.attempts == 3 and run.lost == 2 + 0
    assert Restarted((None,), (((0, 0), (0, 1)),), 1.0).lost == 0
    assert Restarted((None,), ((),), 1.0).attempts == 1


def test_a_journal_outlives_its_rank(tmp_path):
    code = (
        f"from pathlib import Path\nfrom utils.runtime.jobs.faults import *\n"
        f"import utils.runtime.jobs.faults as f\nf.begin(Journal(Path({str(tmp_path)!r}), 0, 0, [Kill(0, 2)]))\n"
        "for step in range(5): reached(step)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == -9
    assert read_journal(tmp_path, 0) == ((0, 0), (0, 1), (0, 2))
    assert read_journal(tmp_path, 1) == ()


def test_only_the_rank_and_the_attempt_of_the_plan_die(tmp_path, monkeypatch):
    plan = [Kill(1, 0), Kill(0, 0, attempt=1)]
    journal = Journal(tmp_path, 0, 0, plan)
    monkeypatch.setattr(faults, "_journal", journal)
    reached(0)
    reached(1)
    assert read_journal(tmp_path, 0) == ((0, 0), (0, 1))


def test_a_checkpoint_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    assert load(path) is None
    save(path, {"weights": torch.arange(3.0)}, 7)
    state, step = load(path)
    assert step == 7 and state["weights"].tolist() == [0, 1, 2]

    def dies(*_):
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", dies)
    with pytest.raises(OSError, match="no room"):
        save(path, {"weights": torch.zeros(3)}, 9)
    assert load(path)[1] == 7


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Kill(-1, 3), "rank is -1"),
        (lambda: Kill(0, 2.5), "step is 2.5"),
        (lambda: Kill(0, 1, saving="yes"), "saving is 'yes'; it is yes or no"),
        (lambda: reached(-1), "step is -1"),
        (lambda: run_with_restarts(train, 0), "ranks is 0"),
        (lambda: run_with_restarts(train, 2, max_restarts=99), "max_restarts is 99; .* at most 10"),
        (lambda: run_with_restarts(train, 2, kill=Kill(2, 0)), "the rank of kill is 2; .* at most 1"),
        (lambda: run_with_restarts(train, 2, kill="rank 1"), "kill is 'rank 1'; give a list of Kill"),
        (lambda: run_with_restarts(train, 2, timeout=0), "timeout is 0"),
        (lambda: save("x", {}, -1), "step is -1"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
