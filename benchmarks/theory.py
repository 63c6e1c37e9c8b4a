"""How fast and small the laws are: model states by the hundred thousand, whole breakdowns, and what importing costs.

Each figure comes from a fresh interpreter, so that nothing is warm that a learner's first cell would not find warm.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Figure, seconds, spread

CASES = 100_000
STATES = """
import json, resource, time
from itertools import islice, product
from utils.theory.memory import STRATEGIES, model_states
models = [10**8 * i for i in range(1, 201)]
clusters = [8 * i for i in range(1, 85)]
cases = islice(product(models, clusters, STRATEGIES), {cases})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
all_states = [model_states(p, n, s, 8 if s == "hsdp" else None) for p, n, s in cases]
took = time.perf_counter() - start
assert len(all_states) == {cases}
print(json.dumps([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000]))
"""
BREAKDOWNS = """
import json, time
from utils.theory.breakdown import training_memory
from utils.theory.models import PRESETS
model = PRESETS["Llama-2-70B"]
start = time.perf_counter()
for n in range(1, 1001):
    training_memory(model, 8 * n, "fsdp", 2048).total
print(json.dumps([time.perf_counter() - start, 0]))
"""


def fresh(code: str, rounds: int) -> list[tuple[float, float]]:
    """What a fresh interpreter prints, a pair of numbers, so many times."""
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(rounds)]
    return [tuple(json.loads(run.stdout)) for run in runs]


def import_seconds(rounds: int) -> list[float]:
    """Seconds that a clean interpreter takes for all of utils.theory, less those of an empty one, in turns."""
    folder = Path(__file__).parents[1] / "utils" / "theory"
    files = [file.relative_to(folder.parents[1]).with_suffix("") for file in sorted(folder.rglob("*.py"))]
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    empty, full = ([sys.executable, "-c", code] for code in ("pass", f"import {', '.join(names)}"))

    def run(command: list[str]) -> float:
        return seconds(lambda: subprocess.run(command, check=True))

    return [run(full) - run(empty) for _ in range(rounds)]


def main() -> None:
    """Measure and print the figures."""
    states = fresh(STATES.format(cases=CASES), 6)
    times, sizes = [took for took, _ in states], [size for _, size in states]
    whole = [took for took, _ in fresh(BREAKDOWNS, 6)]
    imports = import_seconds(10)
    took, size = statistics.median(times), max(sizes)
    Figure(f"{CASES:,} model states, s (median)", took, "<= 2", spread(times), took <= 2).print()
    Figure(f"{CASES:,} model states kept, peak MB of the process", size, "<= 500", None, size <= 500).print()
    took = statistics.median(whole)
    Figure("1,000 breakdowns of a step, s (median)", took, "<= 2", spread(whole), took <= 2).print()
    took = statistics.median(imports)
    Figure("import of all utils.theory, s (median)", took, "<= 0.3", spread(imports), took <= 0.3).print()


if __name__ == "__main__":
    sys.exit(main())
