"""The simulation of a step of FSDP with prefetch against the step itself: lab 05's, and `fully_shard`'s at its best.

Paced layers on two and four nodes, links of three speeds: below the one from which gathers hide, near it, and above.
The simulation knows the units' bytes and seconds, the links' set rate and bucket, and a latency measured beforehand
with gathers of a few bytes. gloo's reduce-scatter is the ring's rule's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.figures import Figure, spread
from benchmarks.sharded import COUNT, FORWARD, UNIT, in_turns, paced_layers, sgd, slowest, torchs_step, your_step
from utils import Cluster, all_gather_single, launch
from utils.notebooks.answers import load_answers
from utils.runtime.kernel_link import burst_bytes
from utils.theory.lifecycle import hiding_bandwidth
from utils.theory.sharing import GLOO_CONCURRENCY, Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.units import format_speed

SPEEDS = (100e6, 200e6, 400e6)  # bits per second
MEAN, WORST = 0.05, 0.10


def stepping(rank: int, prefetch: Any, rounds: int) -> dict[str, list[float]]:
    """In a rank: seconds of some steps of yours and of torch's, in turns."""
    inputs = torch.ones(1, requires_grad=True)
    steps = {
        "lab 05's prefetch": your_step(prefetch, paced_layers(), inputs, sgd),
        "fully_shard at its best": torchs_step(paced_layers(), inputs, sgd, best=True),
    }
    return in_turns(steps, rounds)


def small_gathers(rank: int) -> dict[str, list[float]]:
    """In a rank: seconds of some very small all-gathers."""
    mine = torch.ones(1)
    whole = torch.empty(dist.get_world_size())
    return in_turns({"gather": lambda: all_gather_single(whole, mine)}, 40)


def latency(cluster: Cluster) -> float:
    """Seconds of one step of a ring, measured."""
    times = slowest(launch(small_gathers, cluster.ranks, cluster=cluster).values)["gather"]
    return statistics.median(times) / (cluster.ranks - 1)


def simulated(cluster: Cluster, latency: float) -> float:
    """Seconds that a step is predicted to take."""
    burst = burst_bytes(cluster.bits_per_second)
    link = Link(cluster.goodput, latency, GLOO_CONCURRENCY, by_turns=True, burst=burst, by_messages=True)
    return simulate_step([Layer(FORWARD, gradient_bytes=UNIT)] * COUNT, cluster.ranks, link, "fsdp", prefetch=1).seconds


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=3, help="every link in turns, this often")
    arguments.add_argument("--steps", type=int, default=4, help="timed steps of each kind in each launch")
    options = arguments.parse_args()
    prefetch = load_answers("05", "solutions").prefetch
    clusters = [Cluster(ranks, 1, speed) for ranks in (2, 4) for speed in SPEEDS]
    if clusters[0].kind != "kernel":
        sys.exit(f"there is no kernel link to measure. {clusters[0].why}")
    for ranks in (2, 4):
        print(f"{ranks} ranks: gathers hide from {format_speed(8 * hiding_bandwidth(UNIT, ranks, FORWARD))} on")
    laws = [simulated(cluster, latency(cluster)) for cluster in clusters]
    found: list[dict[str, list[float]]] = [{} for _ in clusters]
    for _ in range(options.rounds):
        for cluster, times in zip(clusters, found, strict=True):
            by_rank = launch(
                stepping,
                cluster.ranks,
                prefetch,
                options.steps,
                cluster=cluster,
                timeout=600,
                true_reduce_scatter=True,
            ).values
            for name, each in slowest(by_rank).items():
                times.setdefault(name, []).extend(each)
    print(f"{'link':>12} {'ranks':>5} {'step of':>24} {'simulated':>10} {'measured':>9} {'error':>7}")
    errors: dict[str, list[float]] = {}
    for cluster, law, times in zip(clusters, laws, found, strict=True):
        for name, each in times.items():
            took = statistics.median(each)
            errors.setdefault(name, []).append(law / took - 1)
            where = f"{format_speed(cluster.bits_per_second):>12} {cluster.ranks:>5} {name:>24}"
            print(f"{where} {1e3 * law:7.0f} ms {1e3 * took:6.0f} ms {100 * errors[name][-1]:6.1f}%")
    chance = max(spread(each) for times in found for each in times.values())
    for name, each in errors.items():
        mean, worst = statistics.mean(map(abs, each)), max(map(abs, each))
        what = f"step with prefetch simulated against {name}"
        Figure(f"{what}, mean error", mean, f"<= {MEAN}", chance, mean <= MEAN).print()
        Figure(f"{what}, worst error", worst, f"<= {WORST}", chance, worst <= WORST).print()


if __name__ == "__main__":
    main()
