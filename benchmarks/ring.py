"""The solved ring of lab 03 against gloo's own all-reduce, in turns in one launch on links of a chosen speed.

Four nodes of one rank, links of 1 Gbit/s and of 300 Mbit/s, 32 MiB. Each round runs the lab's first ring, the pipelined
ring that the lab ends with, and gloo's all-reduce, one after the other; the ratio is the median of the rounds' own
ratios, which a slow minute leaves alone. Beside it stands gloo against gloo: the ratio of its even rounds to its odd
ones. The bounds are for the pipelined ring. The first one adds while its link waits, which is what pieces cure: it is
printed beside without a bound.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from benchmarks.figures import Figure, spread
from utils import Cluster, launch
from utils.notebooks.answers import load_answers
from utils.theory.traffic import bus_bandwidth
from utils.theory.units import MiB, format_speed

SIZE, NODES, PIECES = 32 * MiB, 4, 8
SPEEDS = (1e9, 300e6)  # bits per second
SLOWER, OF_GOODPUT = 1.05, 0.95

Ways = dict[str, Callable[[torch.Tensor], object]]


def in_turns(rank: int, ways: Ways, rounds: int) -> dict[str, list[float]]:
    """In a rank: seconds of each way's all-reduces, the ranks beginning together; one round to warm up."""
    tensor = torch.zeros(SIZE // 4)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            dist.barrier()
            start = time.perf_counter()
            way(tensor)
            times[name].append(time.perf_counter() - start)
    return {name: each[1:] for name, each in times.items()}


def measure(speed: float, rounds: int) -> dict[str, list[float]]:
    """Seconds by way, each as slow as its slowest rank saw it."""
    lab = load_answers("03", "solutions")
    ways: Ways = {
        "ring": lab.all_reduce_ring,
        "pipelined": lambda tensor: lab.all_reduce_pipelined(tensor, PIECES),
        "gloo": dist.all_reduce,
    }
    cluster = Cluster(NODES, 1, speed)
    if cluster.kind != "kernel":
        sys.exit(f"there is no kernel link to measure on. {cluster.why}")
    by_rank = launch(in_turns, NODES, ways, rounds, cluster=cluster, timeout=600).values
    return {name: [max(at) for at in zip(*(times[name] for times in by_rank), strict=True)] for name in ways}


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=20, help="the ways in turns, this often")
    rounds = arguments.parse_args().rounds
    for speed in SPEEDS:
        times = measure(speed, rounds)
        link = format_speed(speed)
        chance = spread(times["gloo"])
        print(f"{NODES} nodes, {link}, {SIZE // MiB} MiB, {rounds} rounds")
        for name, each in times.items():
            share = bus_bandwidth("all_reduce", SIZE, NODES, statistics.median(each)) / (speed / 8)
            print(f"  {name:10} {1e3 * statistics.median(each):7.1f} ms   busbw {share:.4f} of goodput")
            if name != "pipelined":
                continue
            what = f"lab 03's pipelined ring, {link}"
            ratio = statistics.median(a / b for a, b in zip(each, times["gloo"], strict=True))
            Figure(f"{what}: busbw over goodput", share, f">= {OF_GOODPUT}", spread(each), share >= OF_GOODPUT).print()
            bound = SLOWER + chance - 1
            Figure(f"{what}: time over gloo's", ratio, "<= 1.05 + spread", chance, ratio <= bound).print()


if __name__ == "__main__":
    sys.exit(main())
