"""Published training runs as jobs: who ran what on which machine, and how many tokens a second each GPU made.

The rows lie in data/published_runs.csv, each with its source. What a source does not say stands in `assumed`; what the
model does not cover in `left_out`, and such a row is predicted but not scored. `published` is tokens per second and
GPU: as printed, or from printed TFLOPS or seconds by the source's own count of operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from utils.theory.architecture import Architecture
from utils.theory.families import gpt2, llama, mpt
from utils.theory.flops import flops_per_token
from utils.theory.models import PRESETS
from utils.theory.scale.efficiency import DATA
from utils.theory.scale.hardware import Machine, machine
from utils.theory.scale.job import Job

_FAMILIES = {
    "mpt": lambda h, layers, heads, positions: mpt(h, layers, heads, positions),
    "gpt": lambda h, layers, heads, rows: gpt2(h, layers, heads, 2048, vocabulary=rows),
    "llama": llama,
}
_WHOLE = ("gpus", "sequence", "micro_batch", "accumulation", "tensor", "pipeline", "context", "interleaved")


@dataclass(frozen=True)
class Run:
    """One published run. per_gpu: tokens per second of a GPU, as published."""

    name: str
    table: str
    job: Job
    machine: Machine
    per_gpu: float
    assumed: str
    left_out: str
    source: str

    @property
    def kind(self) -> tuple[str, str]:
        """(GPU type, precision): what one efficiency is calibrated for."""
        return self.machine.gpu.name, self.job.precision

    @property
    def mfu(self) -> float:
        """Published: 6 N + 12 L h s a token over the peak of the job's precision."""
        model = self.job.model
        each = flops_per_token(model.parameters, model.layers, model.heads * model.head_dim, self.job.sequence)
        gpu = self.machine.gpu
        return each * self.per_gpu / (gpu.peak_fp8 if self.job.precision == "fp8" else gpu.peak)


@cache
def published_runs(path: Path = DATA / "published_runs.csv") -> tuple[Run, ...]:
    """All rows of the file, in its order."""
    import csv  # for the file alone

    with path.open(newline="", encoding="utf-8") as file:
        return tuple(_run(row) for row in csv.DictReader(file))


@cache
def named_model(name: str) -> Architecture:
    """A preset's name, or a family and its sizes: "mpt:2048,24,16,2048", "gpt:12288,96,96,51200", "llama:…"."""
    family, _, sizes = name.partition(":")
    return _FAMILIES[family](*(int(size) for size in sizes.split(","))) if sizes else PRESETS[name]


def _run(row: dict[str, str]) -> Run:
    job = Job(
        named_model(row["model"]),
        **{name: int(row[name]) for name in _WHOLE},
        strategy=row["strategy"],
        shard_size=int(row["shard_size"]) if row["shard_size"] else None,
        again=row["again"],
        precision=row["precision"],
        software=row["software"],
    )
    place = machine(row["gpu"], float(row["gigabits"]), int(row["gpus_per_node"]))
    notes = row["assumed"], row["left_out"], row["source"]
    return Run(row["name"], row["table"], job, place, float(row["published"]), *notes)
