"""Sends that start late: only inside, only sends, and every one."""

import time

import pytest
import torch
import torch.distributed as dist

from utils import launch
from utils.runtime.latency import late_sends

LATE = 0.1  # seconds


def sends(rank):
    """Seconds of a message inside and after `late_sends`, of a batch inside, and of an all-reduce inside."""
    tensor, times = torch.zeros(4), []

    def timed(call):
        dist.barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)

    def message():
        dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0)

    def batch():
        both = [dist.P2POp(dist.isend, tensor, 1 - rank), dist.P2POp(dist.irecv, torch.zeros(4), 1 - rank)]
        for work in dist.batch_isend_irecv(both):
            work.wait()

    timed(message)
    with late_sends(LATE):
        timed(message)
        timed(batch)
        timed(lambda: dist.all_reduce(tensor))
    timed(message)
    return times


def test_sends_inside_are_late_and_nothing_else_is():
    for before, inside, batch, collective, after in launch(sends, 2).values:
        assert inside >= LATE - 0.01 and batch >= LATE
        assert min(before, collective, after) < LATE / 2


def test_the_ring_takes_as_many_latencies_as_it_has_steps():
    def steps(rank):
        dist.barrier()
        start = time.perf_counter()
        with late_sends(LATE):
            for _ in range(3):
                sending = dist.isend(torch.zeros(1), (rank + 1) % 3)
                dist.recv(torch.zeros(1), (rank - 1) % 3)
                sending.wait()
        return time.perf_counter() - start

    assert min(launch(steps, 3).values) >= 3 * LATE


def test_sends_are_as_before_when_the_block_ends_by_an_error():
    from torch._C._distributed_c10d import ProcessGroup

    before = ProcessGroup.send
    with pytest.raises(RuntimeError, match="stop"), late_sends(0.0):
        assert ProcessGroup.send is not before
        raise RuntimeError("stop")
    assert ProcessGroup.send is before
