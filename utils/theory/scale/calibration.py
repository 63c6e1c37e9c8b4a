"""How the efficiencies were calibrated: on few rows, which a hash of their names picks, and never on others.

For each GPU type and precision the published rows are ordered by the SHA-256 of their names; the first `ROWS` of them,
and no more than a third, are the calibration rows. Each gives the share of the peak with which the model meets it
exactly; their median is the efficiency. Calibration rows are not scored.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256

from utils.theory.scale.published import Run
from utils.theory.scale.step import MOST_SHARE, predict

ROWS = 5


def calibration_rows(runs: Iterable[Run], salt: str = "") -> dict[tuple[str, str], list[Run]]:
    """By (GPU type, precision): the rows that calibrate it. salt: another choice, to see how much the choice does."""
    kinds: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if not run.left_out:
            kinds[run.kind].append(run)
    chosen = {}
    for kind, rows in kinds.items():
        rows.sort(key=lambda run: sha256((salt + run.name).encode()).hexdigest())
        if len(rows) >= 3:
            chosen[kind] = rows[: min(ROWS, len(rows) // 3)]
    return chosen


def calibrated(chosen: dict[tuple[str, str], list[Run]]) -> dict[tuple[str, str], float]:
    """The share of the peak by (GPU type, precision), 16 bit first: an fp8 job's head runs in 16 bit."""
    shares: dict[tuple[str, str], float] = {}
    for kind in sorted(chosen, key=lambda kind: (kind[1] != "bf16", kind)):
        bf16 = shares.get((kind[0], "bf16"))
        shares[kind] = statistics.median(exact_share(run, bf16) for run in chosen[kind])
    return shares


def exact_share(run: Run, bf16: float | None = None) -> float:
    """The share of the peak with which the prediction is the published throughput, by halving."""
    low, high = 0.05, MOST_SHARE
    for _ in range(40):
        middle = (low + high) / 2
        head = middle if run.job.precision == "bf16" else (bf16 or middle)
        low, high = (
            (low, middle) if predict(run.job, run.machine, middle, head).per_gpu > run.per_gpu else (middle, high)
        )
    return (low + high) / 2


def table(chosen: dict[tuple[str, str], Sequence[Run]]) -> list[dict[str, str]]:
    """The rows of data/matrix_efficiency.csv."""
    return [
        {
            "gpu": kind[0],
            "precision": kind[1],
            "share": f"{share:.4f}",
            "rows": " | ".join(r.name for r in chosen[kind]),
        }
        for kind, share in calibrated(chosen).items()
    ]
