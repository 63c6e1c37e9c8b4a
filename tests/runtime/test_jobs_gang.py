"""Slots are locks of the kernel; without gangs two jobs can stop each other for ever, and are shown waiting."""

import os
import time

import psutil
import pytest

from utils.runtime.errors import RanksHang
from utils.runtime.jobs.gang import JobSpec, Outcome, RankState, run_jobs
from utils.runtime.jobs.slots import is_taken, make_slots, slot_files, take_all, take_one, try_lock

TWO = [JobSpec("A", 3), JobSpec("B", 3)]


def leftovers():
    return [p for p in psutil.process_iter(["cmdline"]) if any("slot_rank.py" in c for c in p.info["cmdline"] or ())]


def test_two_half_started_jobs_wait_for_each_other():
    outcome = run_jobs(TWO, slots=4, gang=False)
    assert outcome.deadlocked and outcome.finished == ()
    for job in "AB":
        assert [state.doing for state in outcome.states[job]] == ["holds", "holds", "waits"]
    assert {state.slot for of_job in outcome.states.values() for state in of_job} == {0, 1, 2, 3, None}
    assert str(outcome).startswith(
        "slots taken rank by rank: DEADLOCK\n  job A, rank 0: holds slot 0, waits for its job"
    )
    assert not leftovers()


def test_as_gangs_both_finish():
    outcome = run_jobs(TWO, slots=4, gang=True)
    assert not outcome.deadlocked and outcome.finished == ("A", "B")
    assert all(state.doing == "done" for of_job in outcome.states.values() for state in of_job)
    assert not leftovers()


@pytest.mark.parametrize("gang", [False, True])
def test_where_there_is_room_for_all_nobody_waits(gang):
    outcome = run_jobs(TWO, slots=6, gang=gang)
    assert not outcome.deadlocked and set(outcome.finished) == {"A", "B"}


def test_a_job_that_has_all_its_slots_is_no_deadlock():
    """A takes two of three slots; B has one of two and waits; when A is done B gets its second."""
    outcome = run_jobs([JobSpec("A", 2, seconds=0.5), JobSpec("B", 2)], slots=3, gang=False)
    assert not outcome.deadlocked and outcome.finished == ("A", "B")


def test_gangs_keep_their_order():
    """C would fit beside A at once, but B came before it."""
    jobs = [JobSpec("A", 3, seconds=0.3), JobSpec("B", 4), JobSpec("C", 1)]
    assert run_jobs(jobs, slots=4, gang=True).finished == ("A", "B", "C")


def test_a_deadline_leaves_no_process():
    with pytest.raises(RanksHang, match=r"not over after 0.8 s: slots taken as gangs"):
        run_jobs([JobSpec("A", 1, seconds=1000)], slots=1, gang=True, timeout=0.8)
    assert not leftovers()


def test_a_lock_is_one_holders_and_ends_with_him(tmp_path):
    make_slots(tmp_path, 3)
    first, held = take_one(tmp_path)
    assert first == 0 and is_taken(slot_files(tmp_path)[0]) and not is_taken(slot_files(tmp_path)[1])
    assert take_all(tmp_path, 3) is None and not is_taken(slot_files(tmp_path)[1])  # what it took is given back
    taken = take_all(tmp_path, 2)
    assert [number for number, _ in taken] == [1, 2] and take_one(tmp_path) is None
    os.close(held)
    assert try_lock(slot_files(tmp_path)[0]) is not None


def test_a_child_that_inherits_the_file_holds_the_lock(tmp_path):
    make_slots(tmp_path, 1)
    _, file = take_one(tmp_path)
    child = os.fork()
    if not child:
        time.sleep(0.5)
        os._exit(0)
    os.close(file)
    assert is_taken(slot_files(tmp_path)[0])
    os.waitpid(child, 0)
    assert not is_taken(slot_files(tmp_path)[0])


def test_states_read_like_sentences():
    assert str(RankState("waits")) == "waits for a slot" and str(RankState("done", 2)) == "done"
    assert str(RankState("works", 2)) == "holds slot 2, works"
    outcome = Outcome(False, ("A", "B"), {"A": (RankState("done", 0),)}, True)
    assert repr(outcome) == "slots taken as gangs: finished: A, then B\n  job A, rank 0: done"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: JobSpec("", 1), "name is ''"),
        (lambda: JobSpec("a/b", 1), "name is 'a/b'; .* letters and digits"),
        (lambda: JobSpec("A", 0), "ranks is 0"),
        (lambda: JobSpec("A", 1, -1), "seconds is -1"),
        (lambda: run_jobs("AB", 4, True), "jobs is 'AB'; give a list of JobSpec"),
        (lambda: run_jobs(TWO, 2, True), "ranks of job A is 3; .* at most 2"),
        (lambda: run_jobs(TWO, 4, "yes"), "gang is 'yes'"),
        (lambda: run_jobs([JobSpec("A", 1)] * 2, 4, True), "jobs are called A, A"),
        (lambda: run_jobs(TWO, 4, True, timeout=0), "timeout is 0"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
