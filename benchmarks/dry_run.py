"""The dry run of Llama-2-70B: seconds, memory, what a rank holds, and whether a step fits 80 GB.

64 ranks without recomputation and with it, and 8 ranks. Each run is a fresh process, timed whole: imports of torch
too. Memory is the most that this process had, by the system's account. Beside it the traced bytes against the laws.
"""

from __future__ import annotations

import argparse

from benchmarks.figures import Figure, spread
from utils.runtime.dry_run import DryRun, dry_run
from utils.theory.units import GB

MODEL = "Llama-2-70B"
SECONDS, RESIDENT = 60, 2 * GB
RUNS = ((64, False), (64, True), (8, True))
#: What the tracer may differ by, as a share: states not at all, gathered parameters and buffers, the whole.
CLOSE, CLOSE_IN_ALL = 0.01, 0.05


def differences(run: DryRun) -> tuple[float, float, float]:
    """The largest share by which states and collectives, gathered parameters and buffers, and the whole differ."""
    rows = run.table
    exact = [row for row in rows if row.where != "peak"]
    parts = [row for row in rows if row.what in ("gathered parameters", "communication buffers")]
    (whole,) = [row for row in rows if row.what == "in all"]
    return max(abs(row.share) for row in exact), max(abs(row.share) for row in parts), abs(whole.share)


def main() -> None:
    """Trace and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=2, help="runs of each kind")
    options = arguments.parse_args()
    for ranks, recompute in RUNS:
        runs = [dry_run(MODEL, ranks, recompute=recompute) for _ in range(options.rounds)]
        name = f"{MODEL} on {ranks} ranks, {'full' if recompute else 'no'} recomputation"
        print(f"{runs[0]}\nit {'fits' if runs[0].fits(80 * GB) else 'does not fit'} into 80 GB\n")
        times, chance = [run.seconds for run in runs], None
        if len(times) > 1:
            chance = spread(times)
        Figure(f"seconds, {name}", max(times), f"<= {SECONDS}", chance, max(times) <= SECONDS).print()
        memory = [run.resident for run in runs if run.resident is not None]
        if memory:
            Figure(
                f"GB of memory, {name}", max(memory) / GB, f"<= {RESIDENT / GB:g}", None, max(memory) <= RESIDENT
            ).print()
        exact, parts, whole = differences(runs[0])
        Figure(f"states and collectives differ, {name}", exact, "0", None, exact == 0).print()
        Figure(f"gathered and buffers differ, {name}", parts, f"<= {CLOSE}", None, parts <= CLOSE).print()
        Figure(f"the whole differs, {name}", whole, f"<= {CLOSE_IN_ALL}", None, whole <= CLOSE_IN_ALL).print()


if __name__ == "__main__":
    main()
