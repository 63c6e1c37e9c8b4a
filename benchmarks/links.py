"""The speed of a cluster's links: what an all-reduce gets out of them, against the speed that was asked for.

Bus bandwidth of an all-reduce of 32 MiB, one rank a node, over the link's goodput, for several speeds and numbers of
nodes in turns, on the kernel's links where there are any and on emulated ones. Of the kernel's also what a cluster
costs: the time to make its nodes, and to take them away. Of emulated ones also a small all-reduce with latency, and
steps of DDP against the simulation with one collective at a time. `--rounds` sets how often, `--kind` which links.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from benchmarks.figures import Figure, seconds, spread
from utils import Cluster, launch
from utils.runtime.kernel_link import KernelLinks
from utils.runtime.paced import PacedLayer
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.traffic import bus_bandwidth
from utils.theory.units import MB, KiB, MiB, format_speed

SIZE = 32 * MiB
SPEEDS = (100e6, 300e6, 1e9)  # bits per second
NODES = (2, 3, 4, 8)
WITHIN = {"kernel": 0.02, "emulated": 0.05}  # of the goodput
ALIKE = 1.05  # the largest over the smallest number of nodes
LATENCY = 0.005  # seconds
LAYERS, GRADIENTS, FORWARD = 8, 4 * MB, 0.010  # of each layer: bytes, seconds
CAPS = (1 * MiB, 8 * MiB, 25 * MiB, None)  # of a bucket; None: all collectives after backward
MEAN_ERROR, WORST_ERROR = 0.05, 0.10


def all_reduces(rank: int, size: int, repeats: int) -> list[float]:
    """Seconds of each of some all-reduces of `size` bytes, the ranks beginning together."""
    x, times = torch.ones(size // 4), []
    dist.all_reduce(torch.ones(1))  # opens the connections
    for _ in range(repeats):
        dist.barrier()
        times.append(seconds(lambda: dist.all_reduce(x)))
    return times


def slowest(by_rank: tuple[list[float], ...]) -> float:
    """The median of what the ranks timed, each time as slow as its slowest rank saw it."""
    return statistics.median(max(times) for times in zip(*by_rank, strict=True))


def share_of_goodput(kind: str, speed: float, nodes: int, repeats: int = 3) -> float:
    """Bus bandwidth over goodput."""
    cluster = cluster_of(kind, nodes, speed)
    took = slowest(launch(all_reduces, nodes, SIZE, repeats, cluster=cluster, timeout=600).values)
    return bus_bandwidth("all_reduce", SIZE, nodes, took) / cluster.goodput


def cluster_of(kind: str, nodes: int, speed: float, latency: float | None = None) -> Cluster:
    """One rank a node."""
    return Cluster(nodes, 1, speed, latency, kind="auto" if kind == "kernel" else kind)


def small_over_law(nodes: int = 4) -> float:
    """Seconds of an all-reduce of 1 KiB on emulated links of 5 ms, over 2(N - 1) latencies."""
    by_rank = launch(all_reduces, nodes, KiB, 5, cluster=cluster_of("emulated", nodes, 1e9, LATENCY)).values
    return slowest(by_rank) / (2 * (nodes - 1) * LATENCY)


def steps(rank: int, cap: int | None, repeats: int) -> list[float]:
    """Seconds of each of some steps; without a cap all layers' gradients are reduced after backward."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[PacedLayer(GRADIENTS // 4, FORWARD) for _ in range(LAYERS)])
    if cap is not None:
        model = DistributedDataParallel(model, bucket_cap_mb=cap / MiB, gradient_as_bucket_view=True)

    def step() -> None:
        model(torch.ones(2)).sum().backward()
        if cap is None:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)

    times = []
    for _ in range(repeats + 2):  # DDP's first step has buckets of its own
        dist.barrier()
        times.append(seconds(step))
    return times[2:]


def step_over_simulated(cap: int | None, speed: float = 1e9, repeats: int = 5) -> float:
    """A step's seconds on two nodes with emulated links, over what the simulation says beforehand."""
    layers = [Layer(FORWARD, gradient_bytes=GRADIENTS)] * LAYERS
    link = Link(speed / 8, concurrency=1)
    law = simulate_step(layers, 2, link, bucket_bytes=cap or MiB, overlap=cap is not None).seconds
    return slowest(launch(steps, 2, cap, repeats, cluster=cluster_of("emulated", 2, speed)).values) / law


def making(nodes: int) -> tuple[float, float]:
    """Seconds to make the nodes of a cluster and to take them away."""
    start = time.perf_counter()
    links = KernelLinks(nodes, 1e9)
    made = time.perf_counter()
    links.close()
    return made - start, time.perf_counter() - made


def print_shares(kind: str, shares: dict[tuple[float, int], list[float]]) -> list[Figure]:
    """A table of medians, and the figures that they must keep to."""
    medians = {case: statistics.median(found) for case, found in shares.items()}
    print(f"{kind:>10} " + " ".join(f"{nodes:>7} nodes" for nodes in NODES))
    figures = []
    for speed in SPEEDS:
        print(f"{format_speed(speed):>10} " + " ".join(f"{medians[speed, nodes]:>13.4f}" for nodes in NODES))
        name, within = f"{kind} links: busbw over goodput at {format_speed(speed)}, 32 MiB", WITHIN[kind]
        worst = max(NODES, key=lambda nodes: abs(medians[speed, nodes] - 1))
        value, chance = medians[speed, worst], spread(shares[speed, worst])
        bound = f"{1 - within:.2f} to {1 + within:.2f}"
        figures.append(Figure(f"{name}, farthest of N = 2, 3, 4, 8", value, bound, chance, abs(value - 1) <= within))
        of_speed = [medians[speed, nodes] for nodes in NODES]
        ratio = max(of_speed) / min(of_speed)
        figures.append(
            Figure(f"{name}, largest over smallest of N = 2, 3, 4, 8", ratio, "<= 1.05", chance, ratio <= ALIKE)
        )
    return figures


def of_kernel(rounds: int) -> list[Figure]:
    """What only the kernel's links cost."""
    figures = []
    costs = [making(4) for _ in range(5 * rounds)]
    for what, times in zip(("make", "take away"), zip(*costs, strict=True), strict=True):
        value = statistics.median(times)
        name = f"kernel links: {what} four nodes, s (median)"
        figures.append(Figure(name, value, "<= 0.15", spread(list(times)), value <= 0.15))
    return figures


def of_emulated(rounds: int) -> list[Figure]:
    """What only emulated links have: latency on every system, and one collective at a time."""
    small = [small_over_law() for _ in range(rounds)]
    ratios: dict[int | None, list[float]] = {cap: [] for cap in CAPS}
    for _ in range(rounds):
        for cap, found in ratios.items():
            found.append(step_over_simulated(cap))
    medians = {cap: statistics.median(found) for cap, found in ratios.items()}
    for cap, median in medians.items():
        print(f"{'no overlap' if cap is None else f'{cap // MiB} MiB':>10}: step over simulated {median:.4f}")
    errors = [abs(median - 1) for median in medians.values()]
    mean, worst, chance = statistics.mean(errors), max(errors), spread(ratios[CAPS[0]])
    value = statistics.median(small)
    law = "all-reduce of 1 KiB over 2(N - 1) · 5 ms, N = 4"
    name = "DDP step against simulated"
    return [
        Figure(f"emulated links: {law}", value, "1.00 to 1.10", spread(small), 1 <= value <= 1.10),
        Figure(f"emulated links: {name}, mean error", mean, "<= 0.05", chance, mean <= MEAN_ERROR),
        Figure(f"emulated links: {name}, worst error", worst, "<= 0.10", chance, worst <= WORST_ERROR),
    ]


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=4, help="every speed and number of nodes in turns, this often")
    arguments.add_argument("--kind", choices=("kernel", "emulated"), help="only these links")
    chosen = arguments.parse_args()
    kinds = [chosen.kind] if chosen.kind else ["kernel", "emulated"]
    if "kernel" in kinds and Cluster(2, 1).kind != "kernel":
        print(f"There is no kernel link to measure. {Cluster(2, 1).why}")
        kinds.remove("kernel")
    cases = [(kind, speed, nodes) for kind in kinds for speed in SPEEDS for nodes in NODES]
    shares: dict[str, dict[tuple[float, int], list[float]]] = {kind: {} for kind in kinds}
    for _ in range(chosen.rounds):
        for kind, speed, nodes in cases:
            shares[kind].setdefault((speed, nodes), []).append(share_of_goodput(kind, speed, nodes))
    figures = [figure for kind in kinds for figure in print_shares(kind, shares[kind])]
    for kind in kinds:
        figures += of_kernel(chosen.rounds) if kind == "kernel" else of_emulated(chosen.rounds)
    for figure in figures:
        figure.print()


if __name__ == "__main__":
    main()
