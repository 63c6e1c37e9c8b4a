"""Under the recorder a correct program does what it does without it, and a run changes nothing in the notebook."""

import datetime
import functools
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest
import torch
import torch.distributed as dist

from utils import launch, reduce_scatter_single
from utils.runtime import processes
from utils.runtime.errors import LaunchError, RankFailed


def test_every_rank_draws_its_own_random_numbers():
    draws = launch(lambda rank: torch.rand(4), 2).values + launch(lambda rank: torch.rand(4), 2).values
    assert len({tuple(draw.tolist()) for draw in draws}) == 4


def test_messages_are_matched_by_their_tags():
    def exchange(rank):
        a, b = torch.zeros(1), torch.zeros(1)
        if rank == 0:
            dist.send(torch.tensor([2.0]), 1, tag=2)
            dist.recv(b, 1, tag=9)
            dist.send(torch.tensor([1.0]), 1, tag=1)
        else:
            work = dist.irecv(a, 0, tag=1)
            dist.recv(b, 0, tag=2)
            dist.send(b, 0, tag=9)
            work.wait()
        return a.item(), b.item()

    assert launch(exchange, 2, timeout=10).values == ((0.0, 2.0), (1.0, 2.0))


def leaves_a_message_and_computes(rank):
    if rank == 1:
        dist.irecv(torch.zeros(1), 0)
        time.sleep(2.5)
    return "done"


def gives_up_on_a_message(rank):
    if rank == 1:
        work = dist.irecv(torch.zeros(1), 0)
        with pytest.raises(RuntimeError):
            work.wait(datetime.timedelta(seconds=2))
    return "done"


def has_a_group_with_a_limit(rank):
    group = dist.new_group(timeout=datetime.timedelta(seconds=2))
    if rank == 1:
        with pytest.raises(RuntimeError):
            dist.all_reduce(torch.ones(1), group=group)
    else:
        time.sleep(3)
    return "done"


def has_a_thread_that_sends(rank):
    thread = threading.Thread(target=lambda: (time.sleep(2.5), dist.send(torch.ones(1), 1 - rank)))
    thread.start()
    dist.recv(torch.zeros(1), 1 - rank)
    thread.join()
    return "done"


@pytest.mark.parametrize(
    "program",
    [leaves_a_message_and_computes, gives_up_on_a_message, has_a_group_with_a_limit, has_a_thread_that_sends],
)
def test_a_slow_but_correct_program_is_not_called_stuck(program):
    assert launch(program, 2, timeout=15).values == ("done", "done")


def test_reduce_scatter_works_in_every_mode():
    def scatter(rank):
        parameter = torch.nn.Parameter(torch.zeros(2))
        with torch.no_grad():
            reduce_scatter_single(parameter, torch.ones(4))
        with torch.inference_mode():
            part = torch.zeros(2)
            reduce_scatter_single(part, torch.ones(4))
        return parameter.tolist(), part.tolist()

    assert launch(scatter, 2).values == (([2, 2], [2, 2]),) * 2


def test_a_group_made_again_is_counted_with_its_own_members():
    def again(rank):
        dist.all_reduce(torch.ones(256))
        dist.destroy_process_group()
        if rank < 2:
            store = dist.FileStore(os.environ["MEETING"], 2)
            dist.init_process_group("gloo", store=store, rank=1 - rank, world_size=2)
            dist.all_reduce(torch.ones(256))

    os.environ["MEETING"] = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"meeting-{os.getpid()}")
    try:
        assert launch(again, 4).ring_bytes == (1536 + 1024, 1536 + 1024, 1536, 1536)
    finally:
        del os.environ["MEETING"]


NOTEBOOK = """
from utils import launch
class Counter:
    runs = 0
    def scaled(self): return SCALE
SCALE = 1
def use(rank):
    Counter.runs += 1
    return Counter()
back = launch(use, 2).values[1]
SCALE = 10
print(Counter.runs, type(back) is Counter, back.scaled(), Counter().scaled())
"""


def test_a_returned_object_leaves_its_class_in_the_notebook_alone():
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "True", "10", "10"], done.stderr


CACHED = """
import functools
from utils import launch
@functools.cache
def square(n): return n * n
print(launch(lambda rank: square(rank + 2), 2).values)
"""


def test_a_cached_function_of_the_notebook_travels():
    done = subprocess.run([sys.executable, "-c", CACHED], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "(4, 9)", done.stderr


def test_a_decorated_function_gets_the_rank():
    def doubled(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            return 2 * fn(*args)

        return wrapper

    assert launch(doubled(lambda rank, x: rank + x), 2, 5).values == (10, 12)


def test_an_argument_is_never_taken_for_the_rank():
    with pytest.raises(RankFailed, match="cannot be called with the rank and 1 more"):
        launch(lambda rank: rank, 2, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="data loaders fork on Linux only")
def test_a_data_loader_with_workers_works_as_in_any_program():
    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return float(i * i)

    def load(rank):
        return [batch.sum().item() for batch in torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=2)]

    assert launch(load, 2).values == ([1, 13], [1, 13])


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes by their parent")
@pytest.mark.parametrize("end", ["well", "raises", "dies", "hangs"])
def test_what_a_rank_started_ends_with_it(end, tmp_path):
    def start(rank):
        program = subprocess.Popen(["sleep", "100"])
        forked = os.fork()
        if forked == 0:
            time.sleep(100)
            os._exit(0)
        (tmp_path / f"{rank}").write_text(f"{program.pid} {forked}")
        if end == "raises":
            raise ValueError
        if end == "dies":
            os.kill(os.getpid(), 9)
        if end == "hangs":
            time.sleep(100)

    if end == "well":
        launch(start, 2)
    else:
        with pytest.raises(LaunchError):
            launch(start, 2, timeout=1)
    pids = [int(pid) for file in tmp_path.iterdir() for pid in file.read_text().split()]
    assert pids
    deadline = time.monotonic() + 2
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_launching_from_threads_leaves_the_notebook_as_it_was():
    main, environment = sys.modules["__main__"], dict(os.environ)
    results = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(launch(lambda rank: rank, n).values)) for n in (1, 2, 1, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [(0,), (0,), (0, 1), (0, 1)]
    assert sys.modules["__main__"] is main
    assert dict(os.environ) == environment


def test_an_interrupt_while_ranks_are_started_leaves_none(monkeypatch):
    import signal

    true_start = processes._start_once

    def interrupted_start(count, method, doors):
        started = true_start(count, method, doors)
        signal.raise_signal(signal.SIGINT)
        return started

    launch(lambda rank: None, 1)
    monkeypatch.setattr(processes, "_start_once", interrupted_start)
    with pytest.raises(KeyboardInterrupt):
        launch(lambda rank: time.sleep(100), 2)
    assert not processes._living


def test_a_folder_that_is_gone_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(LaunchError, match="working folder no longer exists"):
        launch(lambda rank: None, 1)


def test_causes_and_notes_are_told():
    def fails(rank):
        try:
            {}["lr"]
        except KeyError as missing:
            error = RuntimeError("config broken")
            error.add_note("look at the file")
            raise error from missing

    with pytest.raises(RankFailed, match=r"config broken\n  look at the file\n  caused by KeyError: 'lr'"):
        launch(fails, 1)


def test_a_deep_recursion_gives_a_short_report():
    def deeper():
        return deeper()

    with pytest.raises(RankFailed) as caught:
        launch(lambda rank: deeper(), 1)
    assert len(str(caught.value).splitlines()) < 40


def test_a_learners_own_broken_pipe_is_no_echo():
    def fails(rank):
        if rank == 0:
            raise BrokenPipeError("Broken pipe")
        dist.barrier()

    with pytest.raises(RankFailed, match=r"^rank 0 raised BrokenPipeError"):
        launch(fails, 2)
