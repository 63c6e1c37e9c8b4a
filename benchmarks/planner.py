"""How long a plan takes: one in a fresh interpreter, and a thousand that share what repeats among them.

CPU seconds of the process: a plan does nothing but compute.
"""

from __future__ import annotations

import statistics
import sys

from benchmarks.figures import Figure, spread
from benchmarks.theory import fresh

ONE = """
import json, time
from utils.theory.planner import plan
start = time.process_time()
repr(plan("Llama-3-70B", gpus=1024, sequence=8192, global_batch=2048))
print(json.dumps([time.process_time() - start, 0]))
"""
MANY = """
import json, time
from itertools import product
from utils.theory.planner import plan
models = ("Llama-3.2-1B", "Llama-3-8B", "Llama-2-13B", "Qwen2.5-32B", "Llama-3-70B")
asked = list(product(models, (8, 16, 64, 128, 256), (2048, 4096, 8192, 16384), (1, 2, 4, 8, 16), (400, 3200)))
start = time.process_time()
said = [
    plan(model, gpus, sequence=sequence, global_batch=gpus * each, network=network).recommendation
    for model, gpus, sequence, each, network in asked
]
took = time.process_time() - start
assert len(said) == 1000 and len(set(said)) > 500
print(json.dumps([took, 0]))
"""


def main() -> None:
    """Measure and print the figures."""
    for name, code, most in (
        ("one plan with its table, ms of CPU", ONE, 100.0),
        ("1,000 plans, recommended, s of CPU", MANY, 2.0),
    ):
        times = [took for took, _ in fresh(code, 6)]
        value = statistics.median(times) * (1000 if name.endswith("ms of CPU") else 1)
        Figure(f"{name} (median)", value, f"<= {most:g}", spread(times), value <= most).print()


if __name__ == "__main__":
    sys.exit(main())
