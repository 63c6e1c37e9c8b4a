"""The speed of a cluster's links: what an all-reduce gets out of them, against the speed that was asked for.

Bus bandwidth of an all-reduce of 32 MiB, one rank a node, over the link's goodput, for several speeds and numbers of
nodes in turns. Also what a cluster costs: the time to make its nodes, and to take them away. `--rounds` sets how often.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import torch
import torch.distributed as dist

from benchmarks.figures import Figure, seconds, spread
from utils import Cluster, launch
from utils.runtime.kernel_link import KernelLinks
from utils.theory.traffic import bus_bandwidth
from utils.theory.units import MiB, format_speed

SIZE = 32 * MiB
SPEEDS = (100e6, 300e6, 1e9)  # bits per second
NODES = (2, 3, 4, 8)
WITHIN, ALIKE = 0.02, 1.05  # of the goodput; the largest over the smallest number of nodes


def all_reduces(rank: int, repeats: int) -> list[float]:
    """Seconds of each of some all-reduces of `SIZE` bytes, the ranks beginning together."""
    x, times = torch.ones(SIZE // 4), []
    dist.all_reduce(torch.ones(1))  # opens the connections
    for _ in range(repeats):
        dist.barrier()
        times.append(seconds(lambda: dist.all_reduce(x)))
    return times


def share_of_goodput(speed: float, nodes: int, repeats: int = 3) -> float:
    """Bus bandwidth over goodput: the median of some all-reduces, each as slow as its slowest rank saw it."""
    cluster = Cluster(nodes, 1, speed)
    if cluster.kind != "kernel":
        sys.exit(f"there is no kernel link to measure. {cluster.why}")
    by_rank = launch(all_reduces, nodes, repeats, cluster=cluster, timeout=600).values
    took = statistics.median(max(times) for times in zip(*by_rank, strict=True))
    return bus_bandwidth("all_reduce", SIZE, nodes, took) / cluster.goodput


def making(nodes: int) -> tuple[float, float]:
    """Seconds to make the nodes of a cluster and to take them away."""
    start = time.perf_counter()
    links = KernelLinks(nodes, 1e9)
    made = time.perf_counter()
    links.close()
    return made - start, time.perf_counter() - made


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=4, help="every speed and number of nodes in turns, this often")
    rounds = arguments.parse_args().rounds
    shares: dict[tuple[float, int], list[float]] = {(speed, nodes): [] for speed in SPEEDS for nodes in NODES}
    for _ in range(rounds):
        for (speed, nodes), found in shares.items():
            found.append(share_of_goodput(speed, nodes))
    costs = [making(4) for _ in range(5 * rounds)]
    medians = {case: statistics.median(found) for case, found in shares.items()}
    print(f"{'':>10} " + " ".join(f"{nodes:>7} nodes" for nodes in NODES))
    for speed in SPEEDS:
        print(f"{format_speed(speed):>10} " + " ".join(f"{medians[speed, nodes]:>13.4f}" for nodes in NODES))
    for speed in SPEEDS:
        name = f"busbw over goodput at {format_speed(speed)}, 32 MiB"
        worst = max(NODES, key=lambda nodes: abs(medians[speed, nodes] - 1))
        value, chance = medians[speed, worst], spread(shares[speed, worst])
        Figure(f"{name}, farthest of N = 2, 3, 4, 8", value, "0.98 to 1.02", chance, abs(value - 1) <= WITHIN).print()
        of_speed = [medians[speed, nodes] for nodes in NODES]
        ratio = max(of_speed) / min(of_speed)
        Figure(f"{name}, largest over smallest of N = 2, 3, 4, 8", ratio, "<= 1.05", chance, ratio <= ALIKE).print()
    for what, times in zip(("make", "take away"), zip(*costs, strict=True), strict=True):
        value = statistics.median(times)
        Figure(f"{what} four nodes, s (median)", value, "<= 0.15", spread(list(times)), value <= 0.15).print()


if __name__ == "__main__":
    main()
