"""How long one more copy in the host's memory takes, on this machine: the price of a way without GPUDirect RDMA.

    host_copy(64 * MiB).rate                       # bytes per second, memory to memory
    gpu_copy(64 * MiB, pinned=True).rate           # GPU to host; page-locked memory, or ordinary (pageable) memory

Without GPUDirect RDMA a gradient goes from the GPU into the host's memory, and the network card reads it from there.
A copy from a GPU into pageable memory is two: the driver copies into page-locked memory of its own, the CPU from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from utils.theory.arguments import check_whole, check_yes_or_no


@dataclass(frozen=True)
class Copy:
    """size: bytes copied. seconds: of the fastest of some copies; a busy machine only ever slows one down."""

    size: int
    seconds: float

    @property
    def rate(self) -> float:
        """Bytes copied per second; each is read and written."""
        return self.size / self.seconds


def host_copy(size: int, rounds: int = 7) -> Copy:
    """Copy `size` bytes from one place in the host's memory to another, with one thread.

    Raises ValueError for a size or a number of rounds below 1.
    """
    check_whole("size", size, "a size in bytes")
    source, target = torch.ones(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.uint8)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as one process of eight on a node
    try:
        return Copy(size, _fastest(lambda: target.copy_(source), rounds))
    finally:
        torch.set_num_threads(threads)


def gpu_copy(size: int, pinned: bool, rounds: int = 7) -> Copy:
    """Copy `size` bytes from the GPU into the host's memory, which is page-locked or pageable.

    Raises ValueError for a size below 1, RuntimeError where there is no GPU.
    """
    check_whole("size", size, "a size in bytes")
    check_yes_or_no("pinned", pinned)
    if not torch.cuda.is_available():
        raise RuntimeError("there is no GPU here to copy from: use host_copy, which needs none.")
    source = torch.ones(size, dtype=torch.uint8, device="cuda")
    target = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)

    def copy() -> None:
        target.copy_(source, non_blocking=pinned)
        torch.cuda.synchronize()

    return Copy(size, _fastest(copy, rounds))


def _fastest(copy: Callable[[], object], rounds: int) -> float:
    check_whole("rounds", rounds, "how often the copy is made")
    copy()  # the first touches pages that have no memory yet
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        copy()
        times.append(time.perf_counter() - begin)
    return min(times)
