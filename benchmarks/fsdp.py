"""The solved FSDP of lab 05, with prefetch, against `fully_shard` at its best: time of a step, and memory.

At its best: asynchronous unshard, the next unit's gather issued ahead, reduce-scatters left under way. As it comes on a
CPU, where nothing overlaps, it stands beside, and so does lab 05's first version. All in turns in one launch, by pairs,
with `fully_shard` at its best a second time: A against A. Paced layers on shaped links, where communication hides or
does not, and layers that really compute, on a link and on loopback. gloo's reduce-scatter is the ring's rule's for all.

Memory: parameters at the ledger's events against the formula of `theory.lifecycle`, then all tensors that live and what
the process takes from the system, with Adam. The C library is told to give back what is freed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from typing import Any

import torch

from benchmarks.figures import Figure
from benchmarks.sharded import (
    COUNT,
    WIDTH,
    in_memory,
    in_turns,
    paced_layers,
    real_layers,
    sgd,
    slowest,
    torchs_step,
    your_step,
)
from utils import Cluster, launch
from utils.notebooks.answers import load_answers
from utils.theory.lifecycle import lifecycle
from utils.theory.units import MB, format_speed

AT_MOST = 1.05  # times the step of `fully_shard` at its best, and the spread on top
FROM_FORMULA = 0.02
SAMPLES = 256  # rows of a rank's batch, for layers that compute
#: ranks, bits per second of the links (None: loopback), whether the layers are paced.
PLACES: tuple[tuple[int, float | None, bool], ...] = (
    (2, 100e6, True),
    (2, 200e6, True),
    (2, 400e6, True),
    (4, 200e6, True),
    (2, 1e9, False),
    (2, None, False),
)


def all_in_turns(rank: int, fsdp: Any, prefetch: Any, paced: bool, rounds: int) -> dict[str, list[float]]:
    """In a rank: seconds of some steps of each kind, in turns."""
    make = paced_layers if paced else real_layers
    inputs = torch.ones(1 if paced else (SAMPLES, WIDTH), requires_grad=True)
    steps = {
        "yours": your_step(prefetch, make(), inputs, sgd),
        "torch's": torchs_step(make(), inputs, sgd, best=True),
        "torch's again": torchs_step(make(), inputs, sgd, best=True),
        "torch's as it comes": torchs_step(make(), inputs, sgd, best=False),
        "yours without prefetch": your_step(fsdp, make(), inputs, sgd),
    }
    return in_turns(steps, rounds)


def compare_times(lab: Any, rounds: int) -> list[Figure]:
    """Print the times; the figures that they must keep to."""
    figures = []
    for ranks, speed, paced in PLACES:
        cluster = None if speed is None else Cluster(ranks, 1, speed)
        if cluster is not None and cluster.kind != "kernel":
            sys.exit(f"there is no kernel link to measure on. {cluster.why}")
        options = {"cluster": cluster, "timeout": 900, "true_reduce_scatter": True}
        run = launch(all_in_turns, ranks, lab.fsdp, lab.prefetch, paced, rounds, **options)
        times = slowest(run.values)
        link = "loopback" if speed is None else format_speed(speed)
        where = f"{'paced' if paced else 'real'} layers, {ranks} ranks, {link}"
        medians = ", ".join(f"{name} {1e3 * statistics.median(each):.0f} ms" for name, each in times.items())
        print(f"{where}: {medians} (medians of {rounds} in turns)")
        ratio, same = (
            statistics.median(a / b for a, b in zip(times[name], times["torch's"], strict=True))
            for name in ("yours", "torch's again")
        )
        chance = max(same, 1 / same)
        name = f"step of lab 05's prefetch over fully_shard at its best, {where}"
        figures.append(Figure(name, ratio, f"<= {AT_MOST} + spread", chance, ratio <= AT_MOST + chance - 1))
    return figures


def compare_memory(prefetch: Any) -> list[Figure]:
    """Print what each holds; the figures that it must keep to."""
    figures = []
    for ranks in (2, 4):
        for name, wrapper, best in (
            ("yours", prefetch, True),
            ("torch's", None, True),
            ("torch's as it comes", None, False),
        ):
            options = {"true_reduce_scatter": True, "timeout": 120}
            parameters, tensors, grown = (
                max(launch(in_memory, ranks, wrapper, best, what, **options).values)
                for what in ("parameters", "tensors", "process")
            )
            ahead = {"forward_prefetch": int(best), "late_free": not best}
            law = lifecycle([WIDTH * WIDTH] * COUNT, ranks, **ahead).peak.bytes
            print(
                f"{ranks} ranks, {name}: at most {parameters / MB:.2f} MB of parameters, formula {law / MB:.2f} MB; "
                f"{tensors / MB:.1f} MB of tensors; process grown by {grown / MB:.0f} MB"
            )
            off = abs(parameters / law - 1)
            what = f"peak bytes of parameters off the formula, {name}, {ranks} ranks"
            figures.append(Figure(what, off, f"<= {FROM_FORMULA}", None, off <= FROM_FORMULA))
    return figures


def main() -> None:
    """Measure and print the figures."""
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "131072"  # before ranks start: glibc gives back what is freed above 128 KiB
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=16, help="steps of each kind in turns")
    options = arguments.parse_args()
    lab = load_answers("05", "solutions")
    figures = compare_memory(lab.prefetch) + compare_times(lab, options.rounds)
    for figure in figures:
        figure.print()


if __name__ == "__main__":
    main()
