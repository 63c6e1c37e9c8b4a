"""However a run on a cluster ends, no process, no namespace and no trace in the host's network is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from tests.runtime.namespaces import host_network, in_other_namespaces, needs_namespaces
from utils import Cluster, launch
from utils.runtime import kernel_link, link_helper
from utils.runtime.errors import LaunchError, RankFailed, RanksHang

pytestmark = needs_namespaces

ROOT = Path(__file__).parents[2]
NOBODY = 65534


def well(rank):
    dist.all_reduce(torch.ones(2**18))


def bad(rank):
    if rank == 1:
        raise ValueError("bad shard")
    dist.all_reduce(torch.ones(4))


def hang(rank):
    if rank == 1:
        time.sleep(1000)
    dist.all_reduce(torch.ones(4))


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def ours():
    return psutil.Process().children(recursive=True)


def marked(mark):
    """Living processes that carry the mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK_OF_THE_TEST") == mark and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def helpers():
    return [p for p in ours() if any(str(kernel_link.HELPER) in part for part in p.cmdline())]


def at_hang(act):
    """Do it as soon as two ranks are in nodes of their own and have had a moment to hang."""

    def wait():
        if wait_until(lambda: len(in_other_namespaces(ours())) >= 3, 30):
            time.sleep(0.3)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


WAYS = ("normal end", "exception", "hang", "interrupt", "helper killed")


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left_after(way):
    end_a_run(way)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left_ten_times_after(way):
    for _ in range(10):
        end_a_run(way)


def end_a_run(way):
    """Run on a cluster until the run ends in this way, and look for what is left."""
    launch(well, 2)  # the fork server runs
    before, descriptors = host_network(), open_descriptors()
    cluster, during, thread = Cluster(2, 1), [], None
    if way == "normal end":
        launch(well, 2, cluster=cluster)
    elif way == "exception":
        with pytest.raises(RankFailed, match="bad shard"):
            launch(bad, 2, cluster=cluster)
    elif way == "hang":
        thread = at_hang(lambda: during.append(host_network()))
        with pytest.raises(RanksHang, match=r"the run was not over after 1\.5 s"):
            launch(hang, 2, cluster=cluster, timeout=1.5)
    elif way == "interrupt":
        thread = at_hang(lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt, match="all ranks were ended"):
            launch(hang, 2, cluster=cluster)
    else:
        thread = at_hang(lambda: helpers()[0].kill())
        start = time.monotonic()
        with pytest.raises(LaunchError, match="the process that keeps the cluster's links was ended"):
            launch(hang, 2, cluster=cluster)
        assert time.monotonic() - start < 15  # it does not wait for the time limit
    if thread:
        thread.join()
    assert in_other_namespaces(ours()) == []
    assert helpers() == []
    assert open_descriptors() == descriptors
    assert host_network() == before
    assert during == ([before] if way == "hang" else [])


SCRIPT = """
import json, os, time, torch, torch.distributed as dist
from utils import Cluster, launch
def all_reduce(rank):
    dist.all_reduce(torch.ones(2**20))
    return os.getuid(), os.readlink("/proc/self/ns/net")
def hang(rank):
    if rank == 1: time.sleep(1000)
    dist.all_reduce(torch.ones(4))
run = launch(all_reduce, 4, cluster=Cluster(2, 2, "5gbit"))
links, wire = ([(c.sent, c.received) for c in counters] for counters in (run.link_bytes, run.wire_bytes))
print(json.dumps({"uid": os.getuid(), "links": links, "wire": wire, "values": run.values}), flush=True)
launch(hang, 2, cluster=Cluster(2, 1))
"""


def python_of_nobody():
    """A Python of this version that any user may run: this one, or the system's."""
    for program in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
        check = [*as_nobody, program, "-c", f"import os; os.execv({program!r}, [{program!r}, '-c', ''])"]
        if shutil.which("setpriv") and subprocess.run(check, capture_output=True).returncode == 0:
            return [*as_nobody, program]
    return None


AS_ROOT = hasattr(os, "getuid") and os.getuid() == 0


@pytest.mark.parametrize("user", ["this user", "nobody"] if AS_ROOT else ["this user"])
def test_nothing_is_left_after_kill_9(user):
    """A program runs on a cluster, then hangs on another and is killed. It works as well for one without privileges."""
    command = [sys.executable]
    if user == "nobody":
        command = python_of_nobody()
        if command is None:
            pytest.skip("no Python here that a user without privileges may run")
    before, mark = host_network(), uuid.uuid4().hex
    path = os.pathsep.join([str(ROOT), *(p for p in sys.path if p.endswith("site-packages"))])
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTEST_CURRENT_TEST", "UTILS_IN_RANK")}
    environment |= {"PYTHONPATH": path, "MARK_OF_THE_TEST": mark, "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    program = subprocess.Popen(
        [*command, "-c", SCRIPT], env=environment, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = program.stdout.readline()
        assert line, program.stderr.read()
        told = json.loads(line)
        law = 1.5 * 4 * 2**20
        for sent, received in told["links"] + told["wire"]:
            assert [sent, received] == pytest.approx([law, law], rel=0.01)
        assert len({space for _, space in told["values"]}) == 2
        assert told["uid"] == (NOBODY if user == "nobody" else os.getuid())
        assert {uid for uid, _ in told["values"]} == {0 if user == "nobody" else os.getuid()}
        # Two ranks and the helper.
        assert wait_until(lambda: len(in_other_namespaces(marked(mark))) >= 3, 30), "two ranks hang in their nodes"
        time.sleep(0.3)
    finally:
        program.kill()
        program.wait()
    assert wait_until(lambda: not marked(mark), 2), marked(mark)
    assert host_network() == before
    program.stdout.close()
    program.stderr.close()


def test_the_helper_ends_when_its_input_does_and_serves_until_then():
    links = kernel_link.KernelLinks(3, 1e9)
    helper = links._helper
    assert [c.sent for c in links.counters()] == [0, 0, 0]
    assert all(os.path.exists(door.network) for door in links.doors)
    start = time.monotonic()
    links.close()
    assert time.monotonic() - start < 1
    assert helper.returncode == 0
    assert not any(os.path.exists(door.network) for door in links.doors)
    with pytest.raises(OSError):
        kernel_link.enter(links.doors[0])


def test_the_helper_refuses_to_serve_a_parent_that_is_gone():
    plan = {"nodes": 1, "mtu": 9000, "shape": kernel_link.shape(1e9), "parent": 1 << 22}
    command = [sys.executable, "-I", "-S", str(kernel_link.HELPER), json.dumps(plan)]
    done = subprocess.run(command, input="\n", capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (1, "")


def test_an_interrupt_does_not_end_the_helper():
    links = kernel_link.KernelLinks(1, 1e9)
    os.kill(links._helper.pid, signal.SIGINT)
    assert links.counters()
    links.close()


def test_a_rank_that_cannot_enter_its_node_tells_so(monkeypatch):
    real = kernel_link.KernelLinks.__init__

    def with_a_wrong_door(self, *args):
        real(self, *args)
        self.doors = (self.doors[0], kernel_link.Door(None, "/proc/self/ns/nothing"))

    monkeypatch.setattr(kernel_link.KernelLinks, "__init__", with_a_wrong_door)
    with pytest.raises(RankFailed, match=r"rank 1 raised FileNotFoundError: .*ns/nothing"):
        launch(well, 2, cluster=Cluster(2, 1))


def test_a_tool_that_refuses_is_quoted():
    with pytest.raises(OSError, match="`ip` refused: "):
        link_helper.tool("ip", ["no-such-object"])
