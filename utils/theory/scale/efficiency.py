"""The one calibrated number: which share of its peak a GPU type reaches in matrices, by precision.

The shares lie in data/matrix_efficiency.csv, with the published rows each was calibrated on; `calibration` says how,
and a test repeats it. A GPU type without rows of its own takes those of the type that it names (`Gpu.like`).

In 16 bit another choice of rows moves a share by a fifth at most, where five rows calibrate it by an eighth. In fp8 two
rows do, and another two may give half of it or more than twice as much: take predictions in fp8 for a guess.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from utils.theory.scale.hardware import GPUS, Gpu
from utils.theory.units import shown

DATA = Path(__file__).parents[1] / "data"


@cache
def shares() -> dict[tuple[str, str], float]:
    """By (GPU type, precision), as calibrated."""
    import csv  # for the file alone

    with (DATA / "matrix_efficiency.csv").open(newline="", encoding="utf-8") as file:
        return {(row["gpu"], row["precision"]): float(row["share"]) for row in csv.DictReader(file)}


def efficiency(gpu: Gpu, precision: str) -> float:
    """Share of the peak that matrices reach; ValueError where no published row calibrates it."""
    known = shares()
    for name in (gpu.name, gpu.like):
        if name is not None and (name, precision) in known:
            return known[name, precision]
    where = [name for name in GPUS if (GPUS[name].like or name, precision) in known or (name, precision) in known]
    raise ValueError(
        f"gpu is {shown(gpu.name)}, for which no published run in {precision} is known here: choose one of "
        f"{', '.join(where)}, or another precision"
    )
