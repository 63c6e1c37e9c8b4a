"""Whether this system permits network namespaces: asked without the suite, which must not skip tests when it fails."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

TOOLS = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
TRIAL = """
ip link add veth0 type veth peer name veth1 && ip link add br0 type bridge &&
tc qdisc add dev veth0 root tbf rate 1gbit burst 100kb limit 1mb
"""


@cache
def permitted():
    """True if `unshare`, as this user or as root of a user namespace, can make what a cluster is made of."""
    unshare = shutil.which("unshare", path=TOOLS)
    if sys.platform != "linux" or unshare is None:
        return False
    for way in (["--net"], ["--user", "--map-root-user", "--net"]):
        command = [unshare, *way, "sh", "-c", TRIAL]
        if subprocess.run(command, capture_output=True, env=os.environ | {"PATH": TOOLS}).returncode == 0:
            return True
    return False


needs_namespaces = pytest.mark.skipif(not permitted(), reason="this system permits no network namespaces")


def in_other_namespaces(processes):
    """Those that live in another network namespace than this process, or hold one open."""
    own = os.readlink("/proc/self/ns/net")
    found = []
    for process in processes:
        try:
            held = [os.readlink(f"/proc/{process.pid}/ns/net")]
            held += [os.readlink(entry) for entry in Path(f"/proc/{process.pid}/fd").iterdir()]
        except OSError:  # it has ended
            continue
        if any(name.startswith("net:") and name != own for name in held):
            found.append(process)
    return found


def host_network():
    """What a person sees of this process's network, without what counts by itself."""
    tools = [["ip", "link"], ["ip", "addr"], ["ip", "route"], ["ip", "netns"], ["ip", "rule"], ["tc", "qdisc"]]
    seen = {
        " ".join(tool): subprocess.run(
            [shutil.which(tool[0], path=TOOLS), *tool[1:]], capture_output=True, check=True
        ).stdout
        for tool in tools
    }
    devices = [line.split(":")[0] for line in Path("/proc/net/dev").read_text().splitlines()]
    return seen, sorted(os.listdir("/proc/net")), devices, Path("/proc/net/route").read_text()
