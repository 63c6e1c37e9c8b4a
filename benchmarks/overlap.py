"""The bucketed DDP of lab 02 against torch's, and the simulation of a step against the step itself.

Both on paced layers and shaped links between two nodes. Yours against torch's: steps in turns in one launch, the same
buckets, pairs compared one by one. Simulated against measured: eight layers of 4 MiB over links of 0.5, 1 and 2 Gbit/s,
buckets of 1, 8 and 25 MiB and nothing overlapped, from the links' set rate and a latency measured beforehand.
"""

from __future__ import annotations

import argparse
import statistics
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks.figures import Figure, spread
from utils import Cluster, launch
from utils.notebooks.answers import load_answers
from utils.runtime.paced import PacedLayer
from utils.runtime.recorder import clock
from utils.theory.sharing import GLOO_CONCURRENCY, Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.units import MiB, format_speed

FORWARD, LAYERS, LAYER = 0.010, 8, 4 * MiB
SPEEDS = (500e6, 1e9, 2e9)  # bits per second
CAPS = (1 * MiB, 8 * MiB, 25 * MiB, None)  # None: nothing overlapped
CAP = 4 * MiB  # of yours against torch's
WARM_UP = 2  # steps: the first one of DDP has one bucket


def make_layers() -> nn.Sequential:
    """Eight paced layers; a parameter has 4 B."""
    return nn.Sequential(*[PacedLayer(LAYER // 4, FORWARD) for _ in range(LAYERS)])


def timed(step: object) -> float:
    """Seconds of one step, the ranks beginning together."""
    dist.barrier()
    begin = clock()
    step()
    return clock() - begin


def paired(
    rank: int, overlap: object, assign_buckets: object, pairs: int
) -> tuple[list[float], list[float], list[float]]:
    """Seconds of some steps of yours, of torch's, and of torch's again, in turns."""
    x = torch.ones(1, requires_grad=True)
    mine, theirs = make_layers(), DistributedDataParallel(make_layers(), bucket_cap_mb=CAP / MiB)
    parameters = list(mine.parameters())
    buckets = [[parameters[i] for i in bucket] for bucket in assign_buckets([LAYER] * LAYERS, CAP)]

    def your_step() -> None:
        mine.zero_grad()
        finish = overlap(buckets)
        mine(x).sum().backward()
        finish()

    def torchs_step() -> None:
        theirs.zero_grad()
        theirs(x).sum().backward()

    turns = (your_step, torchs_step, torchs_step)
    for _ in range(WARM_UP):
        for step in turns:
            timed(step)
    rounds = [[timed(step) for step in turns] for _ in range(pairs)]
    return tuple(map(list, zip(*rounds, strict=True)))


def stepping(rank: int, cap: int | None, steps: int) -> list[float]:
    """Seconds of some steps of torch's DDP, or of all-reduces after backward."""
    layers, x = make_layers(), torch.ones(1, requires_grad=True)
    options = {"bucket_cap_mb": (cap or 0) / MiB, "gradient_as_bucket_view": True}
    model = DistributedDataParallel(layers, **options) if cap else layers

    def step() -> None:
        model(x).sum().backward()
        if cap is None:
            for parameter in layers.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()

    return [timed(step) for _ in range(WARM_UP + steps)][WARM_UP:]


def small_all_reduces(rank: int, repeats: int = 40) -> list[float]:
    """Seconds of some very small all-reduces."""
    return [timed(lambda: dist.all_reduce(torch.ones(1))) for _ in range(repeats)]


def slowest(by_rank: tuple[list[float], ...]) -> list[float]:
    """Each step as long as on its slowest rank."""
    return [max(times) for times in zip(*by_rank, strict=True)]


def simulated(cluster: Cluster, latency: float, cap: int | None) -> float:
    """Seconds that a step is predicted to take."""
    link = Link(cluster.goodput, latency, GLOO_CONCURRENCY, by_turns=True)
    layers = [Layer(FORWARD, gradient_bytes=LAYER)] * LAYERS
    return simulate_step(layers, 2, link, bucket_bytes=cap or LAYER, overlap=cap is not None).seconds


def on_links(link: str | float) -> Cluster:
    """Two nodes; ends the program where the kernel makes no links: emulated ones measure nothing."""
    cluster = Cluster(2, 1, link)
    if cluster.kind != "kernel":
        sys.exit(f"there is no kernel link to measure. {cluster.why}")
    return cluster


def against_torch(pairs: int) -> None:
    """Print the figure of your overlap over torch's DDP."""
    lab = load_answers("02", "solutions")
    by_rank = launch(paired, 2, lab.overlap, lab.assign_buckets, pairs, cluster=on_links("1gbit"), timeout=600).values
    mine, theirs, again = (slowest(times) for times in zip(*by_rank, strict=True))
    ratio = statistics.median(a / b for a, b in zip(mine, theirs, strict=True))
    same = statistics.median(a / b for a, b in zip(again, theirs, strict=True))
    chance = max(same, 1 / same)
    for name, times in (("yours", mine), ("torch's DDP", theirs), ("torch's DDP again", again)):
        print(f"{name:18} {1e3 * statistics.median(times):6.1f} ms a step (median of {pairs})")
    name = "bucketed DDP of lab 02 over torch's DDP, 1 Gbit/s, 8 x 4 MiB"
    Figure(name, ratio, "<= 1.05 x spread", chance, ratio <= 1.05 * chance).print()


def against_simulation(steps: int, rounds: int) -> None:
    """Print how far simulated steps are from measured ones."""
    clusters = {speed: on_links(speed) for speed in SPEEDS}
    latencies = {
        speed: statistics.median(slowest(launch(small_all_reduces, 2, cluster=cluster).values)) / 2
        for speed, cluster in clusters.items()
    }
    found: dict[tuple[float, int | None], list[float]] = {(speed, cap): [] for speed in SPEEDS for cap in CAPS}
    for _ in range(rounds):
        for (speed, cap), times in found.items():
            run = launch(stepping, 2, cap, steps, cluster=clusters[speed], timeout=600)
            times += slowest(run.values)
    errors = []
    print(f"{'link':>12} {'buckets':>16} {'simulated':>10} {'measured':>9} {'error':>7}")
    for (speed, cap), times in found.items():
        law, took = simulated(clusters[speed], latencies[speed], cap), statistics.median(times)
        errors.append(law / took - 1)
        what = f"{cap // MiB} MiB" if cap else "nothing overlaps"
        print(f"{format_speed(speed):>12} {what:>16} {1e3 * law:7.0f} ms {1e3 * took:6.0f} ms {100 * errors[-1]:6.1f}%")
    mean, worst = statistics.mean(map(abs, errors)), max(map(abs, errors))
    chance = max(spread(times) for times in found.values())
    Figure("step time simulated against measured, mean error", mean, "<= 0.05", chance, mean <= 0.05).print()
    Figure("step time simulated against measured, worst error", worst, "<= 0.10", chance, worst <= 0.10).print()


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--pairs", type=int, default=24, help="steps of each kind in turns")
    arguments.add_argument("--rounds", type=int, default=3, help="every link and bucket size in turns, this often")
    arguments.add_argument("--steps", type=int, default=4, help="timed steps in each launch")
    options = arguments.parse_args()
    against_torch(options.pairs)
    against_simulation(options.steps, options.rounds)


if __name__ == "__main__":
    main()
