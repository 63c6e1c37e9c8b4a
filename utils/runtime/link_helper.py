"""A process that makes the nodes of a cluster out of network namespaces, keeps them, and takes them away by its end.

Run as a script by `utils.runtime.kernel_link`, with the standard library alone. It prints one line of JSON, where the
nodes can be joined or why there are none, and then one line of counters for every line that it reads. When its input
ends, or its parent does, it leaves: the namespaces go as soon as no process is in them, with all that is inside.

How the nodes are joined: node k has one interface, eth0, with the address 10.77.0.(k + 1). The other end, vk, is a port
of a bridge in a namespace of its own, the switch. Nothing of it touches the host's network.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

INTERFACE = "eth0"
# Linux's usual one, whatever the system's is: BBR holds back for 0.2 s of every 10, and gave 8 nodes at 100 Mbit/s 0.94
# to 0.97 of their links, where this gave 0.99 or more, in turns.
CONGESTION_CONTROL = "cubic"
# No packet is lost on these links: one that is sent again was late on a busy machine, and would count twice.
RETRANSMIT_AFTER = "3s"
# Nor because packets come in another order, as they do when their sender moves to another core: 300 may come before one
# that is missing is sent again. With selective acknowledgements Linux would not wait for so many.
PATIENCE = {"tcp_sack": "0", "tcp_reordering": "300"}
NEWUSER, NEWNET = 0x10000000, 0x40000000  # linux/sched.h
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_PLACES_OF_TOOLS = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def main(plan: dict[str, Any]) -> int:
    """Make the nodes of a plan and serve until the input ends. Returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the notebook
    try:
        user = own_namespace()
        switch, nodes = make_namespaces(plan["nodes"])
        join_nodes(switch, nodes, plan)
    except OSError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    _libc().prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != plan["parent"]:  # it ended before this process had asked to be told
        return 1
    print(json.dumps({"user": user and path_of(user), "nodes": [path_of(node) for node in nodes]}), flush=True)
    for _ in sys.stdin:
        print(json.dumps([counters(node) for node in nodes]), flush=True)
    return 0


def own_namespace() -> int | None:
    """Leave the host's network. Returns a handle of the user namespace that had to be made for it, if any."""
    try:
        unshare(NEWNET, "a network namespace")
        return None
    except OSError:  # no privilege for that; in a user namespace of one's own there may be
        me, group = os.getuid(), os.getgid()
        unshare(NEWUSER | NEWNET, "a user namespace")
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {me} 1"), ("gid_map", f"0 {group} 1")):
            try:
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
            except OSError as error:
                raise OSError(f"becoming root of a user namespace was refused ({error.strerror})") from None
        return os.open("/proc/self/ns/user", os.O_RDONLY)


def make_namespaces(count: int) -> tuple[int, list[int]]:
    """Handles of the switch's namespace and of one for each node. A namespace lives as long as its handle."""
    spaces = [os.open("/proc/self/ns/net", os.O_RDONLY)]
    for _ in range(count):
        unshare(NEWNET, "a network namespace")
        spaces.append(os.open("/proc/self/ns/net", os.O_RDONLY))
    return spaces[0], spaces[1:]


def join_nodes(switch: int, nodes: list[int], plan: dict[str, Any]) -> None:
    """Lay the links: `plan` has their `mtu` and `shape`, which is what `tc` is told about each of their ends."""
    enter(switch)
    links = ["link add switch type bridge mcast_snooping 0", "link set switch up"]
    for k, node in enumerate(nodes):
        links += [
            f"link add v{k} type veth peer name {INTERFACE} netns {path_of(node)}",
            f"link set v{k} mtu {plan['mtu']} master switch up",
        ]
    tool("ip", links)
    tool("tc", [f"qdisc add dev v{k} {rule}" for k in range(len(nodes)) for rule in plan["shape"][:1]])
    for k, node in enumerate(nodes):
        enter(node)
        tool(
            "ip",
            [
                "link set lo up",
                f"addr add 10.77.0.{k + 1}/24 dev {INTERFACE}",
                f"link set {INTERFACE} mtu {plan['mtu']} up",
            ],
        )
        for setting, value in PATIENCE.items():
            write(f"net/ipv4/{setting}", value)
        route = f"route change 10.77.0.0/24 dev {INTERFACE} src 10.77.0.{k + 1} rto_min {RETRANSMIT_AFTER}"
        tool("ip", [route])
        with contextlib.suppress(OSError):  # this kernel lacks it: the node keeps the system's own
            tool("ip", [f"{route} congctl {CONGESTION_CONTROL}"])
        tool("tc", [f"qdisc add dev {INTERFACE} {rule}" for rule in plan["shape"]])


def enter(space: int) -> None:
    """Move this process into a network namespace, and keep IPv6 from talking there by itself."""
    setns(space, NEWNET)
    for name in ("all", "default"):
        write(f"net/ipv6/conf/{name}/disable_ipv6", "1")


def write(setting: str, value: str) -> None:
    """Set one of the present namespace's, if there is one of that name and it can be set.

    Without it a few more packets are on the counters.
    """
    with contextlib.suppress(OSError), open(f"/proc/sys/{setting}", "w") as file:
        file.write(value)


def tool(name: str, lines: list[str]) -> None:
    """Run iproute2's `ip` or `tc` on these lines, in the present namespace."""
    program = shutil.which(name, path=_PLACES_OF_TOOLS)
    if program is None:
        raise OSError(f"the program `{name}` (iproute2) is not installed")
    done = subprocess.run([program, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise OSError(f"`{name}` refused: {said[0] if said else f'exit status {done.returncode}'}")


def counters(node: int) -> tuple[int, int]:
    """(sent, received) bytes of a node's interface."""
    setns(node, NEWNET)
    with open("/proc/self/net/dev") as file:
        fields = next(line.split(":")[1].split() for line in file if line.strip().startswith(INTERFACE))
    return int(fields[8]), int(fields[0])


def path_of(handle: int) -> str:
    """Where another process finds the namespace."""
    return f"/proc/{os.getpid()}/fd/{handle}"


def unshare(flags: int, what: str) -> None:
    """Leave the present namespaces of these kinds for new ones."""
    if _libc().unshare(flags) != 0:
        raise OSError(f"making {what} was refused ({os.strerror(ctypes.get_errno())})")


def setns(space: int, kind: int) -> None:
    """Move this process, which must have one thread, into a namespace of this kind."""
    if _libc().setns(space, kind) != 0:
        raise OSError(f"entering a namespace was refused ({os.strerror(ctypes.get_errno())})")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
