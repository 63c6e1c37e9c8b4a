"""Real links between the nodes of a cluster: network namespaces of the Linux kernel, joined by shaped interfaces.

The namespaces belong to a helper process (`link_helper.py`); a rank joins the one of its node before it does anything
else. Works as root, and without any privilege where the system permits user namespaces. Imports no torch: a process
that has imported it may have several threads, and the kernel lets only a process with one change its user namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from utils.runtime.errors import LaunchError
from utils.runtime.interrupts import uninterrupted
from utils.runtime.link_helper import INTERFACE, NEWNET, NEWUSER, setns
from utils.theory.units import KiB, MiB

HELPER = Path(__file__).with_name("link_helper.py")
MTU = 9000  # bytes: of Ethernet's jumbo frames
# Of a full frame: Ethernet's header, IP's, TCP's, TCP's time stamps. Sources: IEEE 802.3, RFC 791, 9293, 7323.
HEADERS = 14 + 20 + 20 + 12  # bytes
PAYLOAD = MTU - (HEADERS - 14)  # bytes
_LARGEST_PACKET = 64 * KiB  # as TCP hands it over, to be cut into frames where it leaves
_QUEUE = 64 * MiB  # bytes that wait at a link: more than the sockets of a run hold, so that none is dropped


@dataclass(frozen=True)
class LinkBytes:
    """Bytes that a node's interface sent and received, by its own counters.

    Headers are included, acknowledgements too: 66 B for each packet as TCP hands it over, which holds up to 64 KiB.
    Together they are 0.2% of a large transfer's payload (measured at 1 Gbit/s), at most 0.8%.
    """

    sent: int
    received: int

    def __sub__(self, earlier: LinkBytes) -> LinkBytes:
        return LinkBytes(self.sent - earlier.sent, self.received - earlier.received)


@dataclass(frozen=True)
class Door:
    """The way into a node: where its network namespace is, and the user namespace that owns it if there is one."""

    user: str | None
    network: str


class KernelLinks:
    """Nodes that exist from the making of this object until `close`, and at most as long as this process."""

    def __init__(self, nodes: int, bits_per_second: float, latency: float = 0.0) -> None:
        """Raises OSError, whose text says in a few words why there are no such links here."""
        plan = {"nodes": nodes, "mtu": MTU, "shape": shape(bits_per_second, latency), "parent": os.getpid()}
        with uninterrupted():
            self._helper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(HELPER), json.dumps(plan)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        try:
            said = self._listen()
        except BaseException:
            self.close()
            raise
        self.doors = tuple(Door(said["user"], node) for node in said["nodes"])

    def counters(self) -> tuple[LinkBytes, ...]:
        """What each node's interface has sent and received so far. Raises LaunchError if the links are gone."""
        try:
            self._helper.stdin.write("\n")
            self._helper.stdin.flush()
            return tuple(LinkBytes(sent, received) for sent, received in self._listen())
        except OSError:
            raise self.loss() from None

    @property
    def end(self) -> IO:
        """Readable, to `multiprocessing.connection.wait`, when the links are gone before their time."""
        return self._helper.stdout

    def loss(self) -> LaunchError:
        """What to raise when they are gone."""
        return LaunchError("the process that keeps the cluster's links was ended, and the links with it: launch again.")

    def close(self) -> None:
        """Take the nodes away. Processes in them keep a dead interface."""
        with contextlib.suppress(OSError):
            self._helper.stdin.close()
        try:
            self._helper.wait(5)
        except subprocess.TimeoutExpired:
            self._helper.kill()
            self._helper.wait()
        self._helper.stdout.close()
        self._helper.stderr.close()

    def _listen(self) -> list | dict:
        line = self._helper.stdout.readline()
        said = json.loads(line) if line else {"error": self._last_words()}
        if isinstance(said, dict) and "error" in said:
            raise OSError(said["error"])
        return said

    def _last_words(self) -> str:
        self._helper.wait()
        lines = self._helper.stderr.read().strip().splitlines()
        return f"its helper ended ({lines[-1] if lines else f'exit status {self._helper.returncode}'})"


def shape(bits_per_second: float, latency: float = 0.0) -> list[str]:
    """What `tc` is told about each end of a link, outermost queue first.

    The token bucket counts frames with their headers, so it gets as much more as lets `bits_per_second` of payload
    pass. A link that was idle lets the first `burst_bytes` pass at once, as any token bucket does. Source: tc-tbf(8).
    """
    rate = round(bits_per_second * (PAYLOAD + HEADERS) / PAYLOAD)
    rules = [f"root handle 1: tbf rate {rate}bit burst {burst_bytes(bits_per_second)} limit {_QUEUE}"]
    if latency:
        rules.append(f"parent 1:1 netem delay {round(latency * 1e6)}us limit 1000000")
    return rules


def burst_bytes(bits_per_second: float) -> int:
    """The bucket's size: one of the largest packets, and what passes in 3 ms: timers of a busy machine are so late.

    Tokens that do not fit beside the packet that waits are lost. Measured at 1 Gbit/s, three and four nodes, on two
    cores with three to four times as much to do: 64 KiB let 94 to 98% of the speed pass, 128 KiB 96 to 99%, 440 KiB
    96 to 100%. A larger bucket would let more pass at once after a pause.
    """
    return _LARGEST_PACKET + round(bits_per_second / 8 * 3e-3)


def why_no_kernel_links() -> str:
    """Why this machine has none, in a few words; "" if it has. Tried once in a process, by making two nodes."""
    return _trial(latency=0.0)


def kernel_delays() -> bool:
    """Whether the kernel can also delay what crosses a link (its module sch_netem, which some systems lack)."""
    return not _trial(latency=0.001)


@cache
def _trial(latency: float) -> str:
    if sys.platform != "linux":
        return f"network namespaces are Linux's, and this is {sys.platform}"
    try:
        KernelLinks(2, 1e9, latency).close()
    except OSError as error:
        return str(error)
    return ""


def enter(door: Door) -> str:
    """Move this process into a node, and return the name of its interface. Only a process with one thread can.

    Raises OSError if the node is gone or the kernel refuses.
    """
    spaces = [(door.user, NEWUSER)] if door.user else []
    with contextlib.ExitStack() as stack:
        handles = []  # all opened before the first is entered: from inside, the paths may be closed to it
        for path, kind in [*spaces, (door.network, NEWNET)]:
            handles.append((os.open(path, os.O_RDONLY | os.O_CLOEXEC), kind))
            stack.callback(os.close, handles[-1][0])
        for handle, kind in handles:
            setns(handle, kind)
    return INTERFACE
