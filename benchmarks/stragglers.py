"""One slow rank of four: the step of all against the slowest rank's own compute.

Paced layers, so that the ranks do not slow each other down. The prediction is the slowest rank's pace and nothing else;
the gradients are small and travel in one all-reduce, and what it takes, some 10 ms on two busy cores, is part of the
error. So a step is some hundred milliseconds long.
"""

from __future__ import annotations

import argparse
import statistics

import torch
import torch.distributed as dist

from benchmarks.figures import Figure, spread
from utils import launch
from utils.runtime.paced import PacedLayer
from utils.runtime.recorder import clock
from utils.theory.stragglers import step_of_all

RANKS, LAYERS, FORWARD = 4, 4, 0.050
FACTORS = (1.0, 1.25, 1.5, 2.0)  # of the slow rank, rank 2
WITHIN = 0.05


def pace(rank: int, factor: float) -> float:
    """Seconds of a layer's forward on that rank."""
    return FORWARD * (factor if rank == 2 else 1.0)


def stepping(rank: int, factor: float, steps: int) -> list[float]:
    """In a rank: seconds of some steps, after a first one that is not counted."""
    layers = [PacedLayer(1024, pace(rank, factor)) for _ in range(LAYERS)]
    x, times = torch.ones(1, requires_grad=True), []
    for _ in range(steps + 1):
        begin = clock()
        y = x
        for layer in layers:
            y = layer(y)
        y.sum().backward()
        dist.all_reduce(torch.cat([layer.weight.grad for layer in layers]))
        for layer in layers:
            layer.weight.grad = None
        times.append(clock() - begin)
    return times[1:]


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--steps", type=int, default=20)
    steps = arguments.parse_args().steps
    for factor in FACTORS:
        law = step_of_all([3 * LAYERS * pace(rank, factor) for rank in range(RANKS)])
        run = launch(stepping, RANKS, factor, steps, timeout=300)
        times = [max(each) for each in zip(*run.values, strict=True)]
        ratio = statistics.median(times) / law
        Figure(
            f"one rank of {RANKS} at {factor:g} times the others' pace: step / the slowest rank's compute",
            ratio,
            f"within {WITHIN:.0%} of 1",
            spread(times),
            abs(ratio - 1) <= WITHIN,
        ).print()


if __name__ == "__main__":
    main()
