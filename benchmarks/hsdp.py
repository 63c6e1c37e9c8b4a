"""A step of DDP, FSDP and HSDP on 2 nodes of 2 ranks, simulated and measured, over links of 100 to 1000 Mbit/s.

Eight paced layers of 8 MiB, S = 67 MB, forward 40 ms and backward 80 ms each: about as long as their bytes take on the
fastest of these links. DDP has a bucket for each layer, which
travels during backward. `fully_shard` comes as it is on a CPU, where it waits for each collective where it is issued;
its reduce-scatters are true to the ring's rule. The simulation knows sizes, the links' set rates and one latency per
collective for each strategy, fitted beforehand on links of 2 Gbit/s: what ranks, copies and wake-ups add. HSDP's groups
are the nodes; what goes on inside them counts by its latency alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from itertools import combinations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from benchmarks.figures import Figure, spread
from utils import Cluster, launch
from utils.runtime.paced import PacedLayer
from utils.runtime.recorder import clock
from utils.theory.sharing import GLOO_CONCURRENCY, Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.traffic import step_bytes
from utils.theory.units import MB, MiB, format_speed

NODES, PER_NODE = 2, 2
FORWARD, LAYERS, LAYER = 0.040, 8, 8 * MiB
#: Bits per second -> (launches, timed steps in each): launches differ, the more so the shorter a step is.
SPEEDS = {100e6: (1, 1), 200e6: (1, 2), 500e6: (2, 2), 1e9: (3, 2)}
FITTED_AT, FITTING = 2e9, (3, 3)
STRATEGIES = ("ddp", "fsdp", "hsdp")
WARM_UP = 1  # DDP's first step has one bucket
APART = 0.15  # a gap between two simulated steps, in parts of the shorter one, that decides an order
MEAN, WORST = 0.07, 0.15


def make_model(strategy: str) -> nn.Module:
    """The paced layers, wrapped; a parameter has 4 B."""
    layers = nn.Sequential(*[PacedLayer(LAYER // 4, FORWARD) for _ in range(LAYERS)])
    if strategy == "ddp":
        return DistributedDataParallel(layers, bucket_cap_mb=LAYER / MiB, gradient_as_bucket_view=True)
    shape = (NODES, PER_NODE) if strategy == "hsdp" else (NODES * PER_NODE,)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard")[-len(shape) :])
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(layers, mesh=mesh)


def stepping(rank: int, strategy: str, steps: int) -> list[float]:
    """In a rank: seconds of some steps, the ranks beginning together."""
    model, x, times = make_model(strategy), torch.ones(1, requires_grad=True), []
    for _ in range(WARM_UP + steps):
        model.zero_grad(set_to_none=strategy != "ddp")  # DDP's are views of its buckets
        dist.barrier()
        begin = clock()
        model(x).sum().backward()
        times.append(clock() - begin)
    return times[WARM_UP:]


def measured(speed: float, launches: int, steps: int) -> dict[str, list[float]]:
    """By strategy, in turns: seconds of some steps, each as long as on its slowest rank."""
    cluster = Cluster(NODES, PER_NODE, speed)
    if cluster.kind != "kernel":
        sys.exit(f"there is no kernel link to measure. {cluster.why}")
    times: dict[str, list[float]] = {strategy: [] for strategy in STRATEGIES}
    for _ in range(launches):
        for strategy, found in times.items():
            run = launch(
                stepping, cluster.ranks, strategy, steps, cluster=cluster, timeout=900, true_reduce_scatter=True
            )
            found += [max(each) for each in zip(*run.values, strict=True)]
    return times


def simulated(strategy: str, speed: float, latency: float) -> float:
    """Seconds that a step is predicted to take. latency: seconds of each step of a ring."""
    inside = Link(1e15, latency, GLOO_CONCURRENCY, by_turns=True)
    across = Link(speed / 8, latency, GLOO_CONCURRENCY, by_turns=True)
    options = {"bucket_bytes": LAYER} if strategy == "ddp" else {"overlap": False}
    if strategy == "hsdp":
        options["shard_size"] = PER_NODE
    layers = [Layer(FORWARD, gradient_bytes=LAYER)] * LAYERS
    return simulate_step(layers, NODES * PER_NODE, inside, strategy, across=across, nodes=NODES, **options).seconds


def fitted(strategy: str, seconds: float) -> float:
    """The latency of a ring's step with which a step at FITTED_AT takes so many seconds; 0 if it is faster anyway."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if simulated(strategy, FITTED_AT, middle) < seconds else (low, middle)
    return low


def compare(rounds: int) -> None:
    """Print the table and the figures."""
    latency = {}
    for strategy, times in measured(FITTED_AT, rounds * FITTING[0], FITTING[1]).items():
        took = statistics.median(times)
        latency[strategy] = fitted(strategy, took)
        moved = step_bytes(LAYERS * LAYER / 4, strategy, 4, PER_NODE if strategy == "hsdp" else None, NODES, 4)
        print(
            f"{strategy}: {moved.across / MB:.0f} MB across from each node; {1e3 * latency[strategy]:.1f} ms a ring's "
            f"step, fitted to {1e3 * took:.0f} ms at {format_speed(FITTED_AT)}",
            flush=True,
        )
    errors, spreads, right, decided = [], [], 0, 0
    print(f"{'link':>12} {'strategy':>9} {'simulated':>10} {'measured':>10} {'error':>7}")
    for speed, (launches, steps) in SPEEDS.items():
        law, found = {}, {}
        for strategy, times in measured(speed, rounds * launches, steps).items():
            law[strategy], found[strategy] = simulated(strategy, speed, latency[strategy]), statistics.median(times)
            errors.append(law[strategy] / found[strategy] - 1)
            spreads.append(spread(times))
            print(
                f"{format_speed(speed):>12} {strategy:>9} {1e3 * law[strategy]:7.0f} ms "
                f"{1e3 * found[strategy]:7.0f} ms {100 * errors[-1]:6.1f}%",
                flush=True,
            )
        for one, other in combinations(STRATEGIES, 2):
            if max(law[one], law[other]) > (1 + APART) * min(law[one], law[other]):
                decided += 1
                right += (law[one] < law[other]) == (found[one] < found[other])
    mean, worst, chance = statistics.mean(map(abs, errors)), max(map(abs, errors)), max(spreads)
    name = "DDP, FSDP and HSDP on 2 x 2, step simulated against measured"
    Figure(f"{name}, mean error", mean, f"<= {MEAN}", chance, mean <= MEAN).print()
    Figure(f"{name}, worst error", worst, f"<= {WORST}", chance, worst <= WORST).print()
    share = right / decided if decided else 0.0
    Figure(f"{name}, order right of {decided} pairs more than 15% apart", share, "== 1", None, share == 1).print()


def main() -> None:
    """Measure and print the figures."""
    # Before ranks start: glibc keeps what is freed, as a GPU's caching allocator does; else pages are made each time.
    os.environ |= {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=1, help="everything so many times; one takes five minutes")
    compare(arguments.parse_args().rounds)


if __name__ == "__main__":
    main()
