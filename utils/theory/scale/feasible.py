"""Whether a published run fits its GPUs by `theory.memory`: it ran, so it should."""

from __future__ import annotations

from utils.theory.breakdown import training_memory
from utils.theory.scale.published import Run

_GIB = 2**30 / 10**9  # an "80 GB" GPU has 80 GiB


def memory_of(run: Run) -> float | None:
    """Bytes of a GPU at the peak, activations counted as the papers do; None where `training_memory` has no such job.

    It has none of tensor, pipeline and context parallelism, of partial recomputation, and of what is left out. Fused
    optimizer, 16-bit logits and reductions: what memory a run needs at least.
    """
    job = run.job
    if job.unit > 1 or run.left_out or job.again not in ("none", "full"):
        return None
    strategy = "hsdp" if job.strategy == "hsdp" else "fsdp" if job.strategy in ("fsdp", "zero3") else job.strategy
    more = {"reduced_bytes": 2} if strategy in ("fsdp", "hsdp") else {}
    return training_memory(
        job.model, job.gpus, strategy, job.sequence, job.micro_batch, job.again, job.shard_size,
        implementation="paper", optimizer_step="fused", logit_bytes=2, **more,
    ).total  # fmt: skip


def fits(run: Run) -> bool | None:
    """Whether that is at most its GPU's memory; None where nothing is known."""
    held = memory_of(run)
    return None if held is None else held <= _GIB * run.machine.gpu.memory
