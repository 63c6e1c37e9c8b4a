"""What really crossed a rank's sockets: the kernel's own TCP counters.

Linux counts, for every TCP connection, the bytes it has sent and received, and tells them to the owner of the socket
(`TCP_INFO`, tcp(7)). No privilege is needed. Elsewhere there is no such counter here, and the answer is None.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from dataclasses import dataclass

# struct tcp_info in linux/tcp.h; bytes_sent and bytes_retrans came with Linux 4.19.
_BYTES_RECEIVED, _BYTES_SENT, _BYTES_RETRANSMITTED, _LENGTH = 128, 200, 208, 216


@dataclass(frozen=True)
class WireBytes:
    """Bytes that one rank's TCP sockets sent and received; headers and retransmissions are not counted."""

    sent: int
    received: int

    def __sub__(self, earlier: WireBytes) -> WireBytes:
        return WireBytes(self.sent - earlier.sent, self.received - earlier.received)


def read_counters(but_to_port: int | None = None) -> dict[str, WireBytes] | None:
    """The counters of every TCP socket of this process, by the socket's name; None where the system has none.

    but_to_port: leaves out those that lead to a port of this number.
    """
    if sys.platform != "linux":
        return None
    counters = {}
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{descriptor}")
            if not name.startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(descriptor))) as twin:
                if twin.type != socket.SOCK_STREAM or twin.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                if but_to_port is not None and twin.getpeername()[1] == but_to_port:
                    continue
                info = twin.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
        except OSError:  # closed in the meantime by another thread
            continue
        if len(info) < _LENGTH:
            return None
        received, sent, again = (
            struct.unpack_from("=Q", info, at)[0] for at in (_BYTES_RECEIVED, _BYTES_SENT, _BYTES_RETRANSMITTED)
        )
        counters[name] = WireBytes(sent - again, received)
    return counters


def wire_bytes_since(start: dict[str, WireBytes] | None, but_to_port: int | None = None) -> WireBytes | None:
    """Bytes sent and received since `start` was read; a socket opened later counts from zero."""
    now = read_counters(but_to_port)
    if start is None or now is None:
        return None
    moved = [counter - start.get(name, WireBytes(0, 0)) for name, counter in now.items()]
    return WireBytes(sum(m.sent for m in moved), sum(m.received for m in moved))
