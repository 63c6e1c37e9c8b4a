"""All-reduce by size, printed as nccl-tests prints it: python -m utils bench all_reduce.

On this machine it starts its own ranks: one for each GPU with NCCL, else `--ranks` processes with gloo. Under a
launcher it joins the ranks that were started, on one node or many, with NCCL where there are GPUs:

    python -m torch.distributed.run --nnodes 2 --nproc-per-node 8 ... benchmarks/all_reduce.py

S is the buffer of one rank, t the mean over `--rounds` all-reduces in a row, of the slowest rank, after a warm-up.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

from benchmarks.figures import Figure
from utils.runtime.device import choose_backend
from utils.theory.nccl_table import TYPES, nccl_header, nccl_line
from utils.theory.traffic import bus_bandwidth
from utils.theory.units import GB, KiB, MiB

WARM_UP = 2


def measure(rank: int, sizes: list[int], rounds: int, dtype: str) -> list[tuple[int, list[float]]]:
    """In a rank: by size, the seconds of each all-reduce, each time the slowest rank's."""
    element = getattr(torch, dtype)
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    found = []
    for size in sizes:
        tensor = torch.zeros(max(1, size // element.itemsize), dtype=element, device=device)
        times = []
        for _ in range(WARM_UP + rounds):
            _wait_for_all(device)
            start = time.perf_counter()
            dist.all_reduce(tensor)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            times.append(time.perf_counter() - start)
        slowest = torch.tensor(times[WARM_UP:], dtype=torch.float64, device=device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        found.append((tensor.numel() * element.itemsize, slowest.tolist()))
    return found


def _wait_for_all(device: torch.device) -> None:
    dist.barrier()
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def report(found: list[tuple[int, list[float]]], ranks: int, backend: str, dtype: str) -> None:
    """The table, and the largest size's bus bandwidth as a figure, with the spread of even rounds against odd."""
    print(f"# all_reduce, {ranks} ranks, {backend}; out of place and in place are the same here")
    print(nccl_header())
    for size, times in found:
        print(nccl_line("all_reduce", size, ranks, statistics.mean(times), dtype))
    rates = [bus_bandwidth("all_reduce", size, ranks, statistics.mean(times)) / GB for size, times in found]
    print(f"# Avg bus bandwidth    : {statistics.mean(rates):g}")
    _, times = found[-1]
    even, odd = statistics.mean(times[::2]), statistics.mean(times[1::2] or times)
    spread = max(even, odd) / min(even, odd)
    Figure(f"busbw of the largest all-reduce, {backend}, GB/s", rates[-1], "> 0", spread, rates[-1] > 0).print()


def by_launcher(options: argparse.Namespace) -> None:
    """Join the ranks that a launcher has started."""
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group(backend)
    found = measure(dist.get_rank(), options.sizes, options.rounds, options.dtype)
    if dist.get_rank() == 0:
        report(found, dist.get_world_size(), backend, options.dtype)
    dist.barrier()
    dist.destroy_process_group()


def by_launch(options: argparse.Namespace) -> None:
    """Start ranks on this machine."""
    from utils import launch

    ranks = options.ranks or max(2, torch.cuda.device_count())
    backend = choose_backend("auto", ranks)
    run = launch(measure, ranks, options.sizes, options.rounds, options.dtype, backend=backend, timeout=600)
    report(run.values[0], ranks, backend, options.dtype)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, help="processes to start; default: one for each GPU, at least 2")
    parser.add_argument("--rounds", type=int, default=10, help="all-reduces of each size")
    parser.add_argument("--least", type=int, default=4 * KiB, help="smallest size in bytes")
    parser.add_argument("--most", type=int, default=32 * MiB, help="largest size in bytes")
    parser.add_argument("--factor", type=int, default=4, help="from one size to the next")
    parser.add_argument("--dtype", choices=TYPES, default="float32")
    options = parser.parse_args()
    if options.factor < 2 or not 1 <= options.least <= options.most or options.rounds < 1:
        parser.error("sizes rise from --least to --most by a --factor of at least 2, with at least 1 round")
    options.sizes = _sizes(options.least, options.most, options.factor)
    by_launcher(options) if "RANK" in os.environ and "WORLD_SIZE" in os.environ else by_launch(options)
    return 0


def _sizes(least: int, most: int, factor: int) -> list[int]:
    sizes = [least]
    while sizes[-1] * factor <= most:
        sizes.append(sizes[-1] * factor)
    return sizes if sizes[-1] == most else [*sizes, most]


if __name__ == "__main__":
    sys.exit(main())
