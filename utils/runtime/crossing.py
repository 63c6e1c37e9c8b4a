"""What a rank's sockets sent to ranks on other nodes, by the kernel's own TCP counters.

A cluster's links of the kernel count what crosses them (`run.link_bytes`). Emulated ones have no counters, but the data
moves between the same ranks over the machine's loopback, and each connection counts for itself: so the bytes for other
nodes can be told from the others there too.
"""

from __future__ import annotations

import os
import socket

import torch.distributed as dist

from utils.runtime.wire import read_counters


def bytes_to_other_nodes() -> int | None:
    """Bytes that this rank has sent since it began to ranks on other nodes; None where the system does not count.

    Called in a rank, by all ranks of the run, which exchange where their connections end: some kilobytes more.
    """
    mine = _connections()
    of_ranks: list[list[tuple]] = [[]] * dist.get_world_size()
    dist.all_gather_object(of_ranks, [own_end for _, own_end, _ in mine])
    rank_at = {end: rank for rank, ends in enumerate(of_ranks) for end in ends}
    counters = read_counters()
    if counters is None:
        return None
    on_node = int(os.environ["LOCAL_WORLD_SIZE"])
    here = dist.get_rank() // on_node
    return sum(
        counters[name].sent
        for name, _, other_end in mine
        if other_end in rank_at and rank_at[other_end] // on_node != here and name in counters
    )


def _connections() -> list[tuple[str, tuple, tuple]]:
    """(the socket's name as in `wire.read_counters`, its own address and port, the other end's) of each connection."""
    found = []
    for descriptor in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            name = os.readlink(f"/proc/self/fd/{descriptor}")
            if not name.startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(descriptor))) as twin:
                if twin.type == socket.SOCK_STREAM and twin.family in (socket.AF_INET, socket.AF_INET6):
                    found.append((name, twin.getsockname()[:2], twin.getpeername()[:2]))
        except OSError:  # it listens, or was closed in the meantime by another thread
            continue
    return found
