"""What a run gives back, and that its ranks are fresh processes that see what the notebook sees."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from utils import device, launch
from utils.runtime import processes
from utils.runtime.printed import SHOWN_PER_RANK


class Pair:
    """A class of the test's own, to be sent there and back."""

    def __init__(self, rank):
        self.rank = rank


def test_values_come_back_by_rank():
    run = launch(lambda rank, factor: rank * factor, 3, 10)
    assert run.values == (0, 10, 20)
    assert (run.world_size, run.backend) == (3, "gloo")
    assert 0 < run.seconds < 30


def test_a_function_without_a_rank_is_called_without_one():
    assert launch(lambda: (dist.get_rank(), dist.get_world_size()), 2).values == ((0, 2), (1, 2))


def test_one_rank_is_a_run_too():
    def alone(rank):
        x = torch.full((3,), 2.0)
        dist.all_reduce(x)
        return x

    run = launch(alone, 1)
    assert torch.equal(run.values[0], torch.full((3,), 2.0))
    assert run.ring_bytes == (0,)


def test_tensors_and_classes_of_the_notebook_travel_both_ways():
    run = launch(lambda rank, pair: (Pair(pair.rank + rank), torch.arange(3) * rank), 2, Pair(5))
    assert [type(pair) for pair, _ in run.values] == [Pair, Pair]
    assert [pair.rank for pair, _ in run.values] == [5, 6]
    assert torch.equal(run.values[1][1], torch.tensor([0, 1, 2]))


def test_ranks_are_fresh_each_time():
    def count(rank):
        dist.runs = getattr(dist, "runs", 0) + 1
        return dist.runs, os.getpid()

    first, second = launch(count, 2).values, launch(count, 2).values
    assert [runs for runs, _ in first + second] == [1, 1, 1, 1]
    assert len({pid for _, pid in first + second} | {os.getpid()}) == 5


def test_ranks_see_the_environment_folder_and_path_of_the_call(monkeypatch, tmp_path):
    launch(lambda rank: None, 1)  # the fork server runs before anything changes
    (tmp_path / "module_of_the_test.py").write_text("ANSWER = 42\n")
    monkeypatch.setenv("SAID_IN_THE_NOTEBOOK", "yes")
    monkeypatch.setenv("WORLD_SIZE", "99")  # left over from elsewhere: must not count
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def look(rank):
        import module_of_the_test

        return os.environ["SAID_IN_THE_NOTEBOOK"], os.environ["WORLD_SIZE"], os.getcwd(), module_of_the_test.ANSWER

    assert launch(look, 2).values == (("yes", "2", str(tmp_path), 42),) * 2


def test_printed_lines_are_shown_in_rank_order_with_a_prefix(capsys):
    def talk(rank):
        for step in range(2):
            dist.barrier()
            print("step", step)
        os.write(2, b"written by C code\n")
        sys.stdout.write("no newline")

    run = launch(talk, 2)
    lines = ["step 0", "step 1", "written by C code", "no newline"]
    assert capsys.readouterr().out.splitlines() == [f"[rank {rank}] {line}" for rank in range(2) for line in lines]
    assert run.printed[0].splitlines() == lines


def test_very_long_output_is_cut_on_the_screen_but_kept(capsys):
    run = launch(lambda rank: print("x" * 3 * SHOWN_PER_RANK), 1)
    shown = capsys.readouterr().out
    assert len(shown) < 1.1 * SHOWN_PER_RANK
    assert "see run.printed[0]" in shown
    assert len(run.printed[0]) == 3 * SHOWN_PER_RANK + 1


def test_a_rank_is_forked_from_one_thread_with_everything_imported():
    def look(rank):
        server = os.getppid()
        imported = [name in sys.modules for name in ("torch._dynamo", "torch.distributed.nn.functional")]
        return len(os.listdir(f"/proc/{server}/task")), imported, torch.get_num_threads()

    if sys.platform != "linux":
        pytest.skip("the fork server is used on Linux only")
    cores = len(os.sched_getaffinity(0))
    assert launch(look, 2).values == ((1, [True, True], max(1, cores // 2)),) * 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net")
def test_ranks_listen_on_loopback_only():
    def listening(rank):
        links = [os.path.join("/proc/self/fd", d) for d in os.listdir("/proc/self/fd")]
        own = {os.readlink(link)[8:-1] for link in links if os.path.islink(link) and "socket:" in os.readlink(link)}
        table = [
            line.split()
            for name in ("tcp", "tcp6")
            for line in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]
        ]
        return [row[1].split(":")[0] for row in table if row[3] == "0A" and row[9] in own]

    addresses = [address for of_rank in launch(listening, 4).values for address in of_rank]
    assert addresses, "every gloo rank listens somewhere"
    assert set(addresses) <= {"0100007F", "00000000000000000000000001000000"}


def test_tensors_live_on_the_cpu_under_gloo():
    assert launch(lambda rank: str(device()), 2, backend="gloo").values == ("cpu", "cpu")
    assert str(device()) == "cpu"


def test_launch_works_from_a_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(launch(lambda rank: rank, 2).values))
    thread.start()
    thread.join(60)
    assert results == [(0, 1)]


def test_a_script_needs_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from utils import launch\n"
        "import torch, torch.distributed as dist\n"
        "def total(rank):\n    x = torch.ones(1) * rank\n    dist.all_reduce(x)\n    return x.item()\n"
        "print(launch(total, 3).values)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("(3.0, 3.0, 3.0)", 0), done.stderr


def test_spawned_processes_are_kept_ready_and_used_once():
    seen = []
    for _ in range(2):
        run = launch(lambda rank: (dist.get_rank(), os.getpid()), 2, start="spawn")
        assert [rank for rank, _ in run.values] == [0, 1]
        seen += [pid for _, pid in run.values]
        idle = {each.process.pid for each in processes._idle}
        assert len(idle) == 2 and not idle & set(seen)
    assert len(set(seen)) == 4
    processes.release(list(processes._idle))
    processes._idle.clear()
