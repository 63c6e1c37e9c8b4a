"""The solved ZeRO-1 of lab 04 against torch's ZeroRedundancyOptimizer with DDP: time of a step, and memory.

Both in fp32 with Adam, on the same eight layers of 4 MiB and the same buckets, in turns in one launch, on links so slow
that communication is nearly all of a step. Yours sends the gradients once (a reduce-scatter, made of sends and a sum:
true to the ring's rule) and the weights once, 2 (N - 1)/N of the weights' bytes. Theirs all-reduces the gradients,
twice as much, and then broadcasts the weights: 3 (N - 1)/N. Theory: 2/3. Loopback stands beside it, without a bound:
there nothing is communication-bound. The bytes that each rank's sockets sent are printed beside the times.

Memory is measured twice: the tensors that live, and what the process takes from the system, with all that the backend
needs. For the second the C library is told to give back what is freed; by default it keeps 5 to 100 MB of it, chance
and the order of requests decide how much.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from benchmarks.figures import Figure, resident, spread
from utils import Cluster, launch
from utils.notebooks.answers import load_answers
from utils.runtime.held import Held
from utils.runtime.recorder import clock
from utils.theory.units import MB, MiB, format_speed

LAYERS, WIDTH = 8, 1024  # weights of 4 MiB each in fp32
WEIGHTS = LAYERS * WIDTH * WIDTH * 4  # bytes
LINKS: tuple[tuple[int, float | None], ...] = ((2, 300e6), (4, 300e6), (2, None), (4, None))  # None: loopback
AT_MOST = 0.8
WARM_UP = 3  # steps: DDP's buckets are settled, Adam's moments made

Step = Callable[[], None]
MakeStep = Callable[[], Step]


def make_model() -> nn.Sequential:
    """Linear layers without biases, the same on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)])


def adam(parameters: Sequence[torch.Tensor]) -> torch.optim.Optimizer:
    """The optimizer of both."""
    return torch.optim.Adam(parameters, lr=1e-4)


def your_step(zero1: Any) -> Step:
    """One step of lab 04's ZeRO-1, with a bucket for each layer."""
    model, x = make_model(), torch.ones(2, WIDTH)
    finish = zero1([[p] for p in reversed(list(model.parameters()))], adam)

    def step() -> None:
        model(x).sum().backward()
        finish()

    return step


def torchs_step() -> Step:
    """One step of DDP with ZeroRedundancyOptimizer, as sparing as their options allow."""
    model, x = make_model(), torch.ones(2, WIDTH)
    cap = WEIGHTS / LAYERS / MiB
    wrapped = DistributedDataParallel(model, bucket_cap_mb=cap, gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.Adam, parameters_as_bucket_view=True, lr=1e-4
    )

    def step() -> None:
        wrapped(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)  # its gradients are views of the buckets

    return step


def in_turns(rank: int, zero1: Any, rounds: int) -> tuple[list[float], list[float]]:
    """In a rank: seconds of some steps of yours and of torch's, one after the other, the ranks beginning together."""
    steps = (your_step(zero1), torchs_step())
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(WARM_UP + rounds):
        for step, found in zip(steps, times, strict=True):
            dist.barrier()
            begin = clock()
            step()
            found.append(clock() - begin)
    return times[0][WARM_UP:], times[1][WARM_UP:]


def in_memory(rank: int, make: MakeStep) -> tuple[int, int]:
    """In a rank: the most bytes of tensors that live in a step, and what the process has grown by at most."""
    dist.all_reduce(torch.ones(1))  # connections, threads
    before, _ = resident()
    with Held() as held:
        step = make()
        for _ in range(WARM_UP):
            step()
        held.forget_peak()
        step()
    return held.peak, resident()[1] - before


def sending(rank: int, make: MakeStep, steps: int) -> None:
    """In a rank: some steps, to count what they send."""
    step = make()
    for _ in range(steps):
        step()


def sent_in_a_step(make: MakeStep, ranks: int) -> float:
    """Bytes that a rank sends in one step, by the kernel's counters: two runs that differ in their number of steps."""
    few, many = (launch(sending, ranks, make, steps, true_reduce_scatter=True).wire_bytes for steps in (2, 4))
    if few is None or many is None:
        sys.exit("this system does not count what sockets send; the benchmark needs Linux.")
    return sum(b.sent - a.sent for a, b in zip(few, many, strict=True)) / 2 / ranks


def compare_times(zero1: Any, rounds: int) -> None:
    """Print times, and the figures of the slow links."""
    for ranks, speed in LINKS:
        cluster = None if speed is None else Cluster(ranks, 1, speed)
        if cluster is not None and cluster.kind != "kernel":
            sys.exit(f"there is no kernel link to measure on. {cluster.why}")
        run = launch(in_turns, ranks, zero1, rounds, cluster=cluster, timeout=900, true_reduce_scatter=True)
        yours, theirs = (
            [max(at) for at in zip(*(times[which] for times in run.values), strict=True)] for which in (0, 1)
        )
        ratio = statistics.median(a / b for a, b in zip(yours, theirs, strict=True))
        where = f"{ranks} ranks, " + ("loopback" if speed is None else format_speed(speed))
        print(
            f"{where}: yours {1e3 * statistics.median(yours):.0f} ms, torch's {1e3 * statistics.median(theirs):.0f} ms"
            f" (medians of {rounds} in turns), ratio {ratio:.3f}"
        )
        if speed is not None:
            name = f"step of lab 04's ZeRO-1 over ZeroRedundancyOptimizer with DDP, {where}"
            chance = max(spread(yours), spread(theirs))
            Figure(name, ratio, f"<= {AT_MOST}", chance, ratio <= AT_MOST).print()


def main() -> None:
    """Measure and print the figures."""
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "131072"  # before ranks start: glibc gives back what is freed above 128 KiB
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=20, help="steps of each kind in turns")
    options = arguments.parse_args()
    zero1 = load_answers("04", "solutions").zero1
    makers: dict[str, MakeStep] = {"yours": partial(your_step, zero1), "torch's": torchs_step}
    for ranks in (2, 4):
        around = (ranks - 1) / ranks * WEIGHTS
        found = {name: sent_in_a_step(make, ranks) / around for name, make in makers.items()}
        print(f"{ranks} ranks: sent in a step, in (N - 1)/N of the weights' bytes:", end=" ")
        print(", ".join(f"{name} {each:.3f}" for name, each in found.items()))
        peaks = {
            name: max(launch(in_memory, ranks, make, true_reduce_scatter=True, timeout=120).values)
            for name, make in makers.items()
        }
        for name, (tensors, grown) in peaks.items():
            print(
                f"{ranks} ranks: {name}: at most {tensors / MB:.1f} MB of tensors; process grown by {grown / MB:.0f} MB"
            )
        ratio = peaks["yours"][0] / peaks["torch's"][0]
        name = f"peak bytes of tensors of lab 04's ZeRO-1 over ZeroRedundancyOptimizer with DDP, {ranks} ranks"
        Figure(name, ratio, "<= 1", None, ratio <= 1).print()
        ratio = peaks["yours"][1] / peaks["torch's"][1]
        name = f"growth of the process, lab 04's ZeRO-1 over ZeroRedundancyOptimizer with DDP, {ranks} ranks"
        Figure(name, ratio, "<= 1", None, ratio <= 1).print()
    compare_times(zero1, options.rounds)


if __name__ == "__main__":
    main()
