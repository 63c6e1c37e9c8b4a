"""No process of a run is left, however it ends. Each way is tried in a real kernel, as a notebook has it."""

import os
import sys
import time
import uuid

import psutil
import pytest
from jupyter_client import KernelManager

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes by their environment in /proc")

SETUP = """
import os, time, torch.distributed as dist, torch
from utils import launch
def well(rank): dist.all_reduce(torch.ones(4)); return os.getpid()
def bad(rank):
    if rank == 1: raise ValueError("bad shard")
    dist.all_reduce(torch.ones(4))
def hang(rank):
    if rank == 1: time.sleep(1000)
    dist.all_reduce(torch.ones(4))
launch(well, 2)
"""
WAYS = {
    "normal end": "launch(well, 4)",
    "exception": "launch(bad, 4)",
    "hang": "launch(hang, 4, timeout=1)",
    "interrupt": "launch(hang, 4)",
    "restart": "launch(hang, 4)",
    "kill -9": "launch(hang, 4)",
}


class Kernel:
    """A kernel whose processes, down to the ranks, carry a mark in their environment."""

    def __init__(self):
        self.mark = uuid.uuid4().hex
        self.manager = KernelManager(kernel_name="python3")
        environment = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
        self.manager.start_kernel(env={**environment, "MARK_OF_THE_TEST": self.mark})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code, timeout=60):
        reply = self.client.execute_interactive(code, timeout=timeout, output_hook=lambda message: None)
        return reply["content"]

    def processes(self):
        """Living processes with the mark: the kernel, the fork server, the resource tracker, ranks."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("MARK_OF_THE_TEST") == self.mark and process.status() != "zombie":
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def ranks(self):
        """Children of the fork server: processes whose parent is not the kernel, and not a stranger."""
        marked = {process.pid: process for process in self.processes()}
        return [p for p in marked.values() if p.ppid() in marked and p.ppid() != self.manager.provisioner.pid]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel():
    kernel = Kernel()
    yield kernel
    kernel.close()


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def try_once(kernel, way):
    if way in ("normal end", "exception", "hang"):
        status = kernel.run(WAYS[way])["status"]
        assert status == ("ok" if way == "normal end" else "error")
        assert wait_until(lambda: not kernel.ranks(), 2), kernel.ranks()
        return
    request = kernel.client.execute(WAYS[way])
    assert wait_until(lambda: len(kernel.ranks()) == 4, 30), "four ranks hang"
    time.sleep(0.3)
    old = set(kernel.processes())
    if way == "interrupt":
        kernel.manager.interrupt_kernel()
        reply = kernel.client.get_shell_msg(timeout=20)
        assert reply["parent_header"]["msg_id"] == request
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert "rank 1 runs at line" in reply["content"]["evalue"]
        assert wait_until(lambda: not kernel.ranks(), 2), kernel.ranks()
    elif way == "restart":
        kernel.manager.restart_kernel(now=False)
        assert wait_until(lambda: not any(p.is_running() and p.status() != "zombie" for p in old), 10), old
        kernel.client.wait_for_ready(timeout=60)
        assert kernel.run(SETUP)["status"] == "ok"
    else:
        os.kill(kernel.manager.provisioner.pid, 9)
        assert wait_until(lambda: not kernel.processes(), 2), kernel.processes()


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.rest if way in ("interrupt", "restart") else ()) for way in WAYS]
)
def test_no_process_is_left_after(kernel, way):
    assert kernel.run(SETUP)["status"] == "ok"
    try_once(kernel, way)


@pytest.mark.long
@pytest.mark.parametrize("way", list(WAYS))
def test_no_process_is_left_ten_times_after(way):
    kernel = None
    for _ in range(10):
        if kernel is None:
            kernel = Kernel()
            assert kernel.run(SETUP)["status"] == "ok"
        try_once(kernel, way)
        if way == "kill -9":
            kernel.close()
            kernel = None
    if kernel is not None:
        kernel.close()


def test_a_cell_sees_the_report_with_its_own_name(kernel):
    assert kernel.run(SETUP)["status"] == "ok"
    content = kernel.run("launch(bad, 2)")
    assert content["traceback"] == [f"RankFailed: {content['evalue']}"]
    assert 'Cell In[1], line 5, in bad\n      if rank == 1: raise ValueError("bad shard")' in content["evalue"]
