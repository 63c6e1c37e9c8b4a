"""How long a step of a job takes at scale, and why: `predict(job, machine)`.

    step = slowest · (micro-batches · (layers + head) + what waits + pipeline bubble + optimizer)

Compute as in `compute`, collectives as in `collectives`. What hides and what does not:

- Data-parallel collectives that overlap run beside the compute of their phase (forward; backward). While they do,
  compute is slower by `CONTENTION`; what is longer than its phase waits. The first gather and the last reduction have
  nothing beside them.
- Tensor-parallel collectives stand between two matrices: exposed, but for what the software cuts into pieces.
- What pipeline stages send is waited for, but where the software hides it behind other pieces of the stage.
- A pipeline of p stages idles (p - 1)/(v m) of the time with m micro-batches and v pieces of each stage (Narayanan et
  al., SC21, section 2.2); its slowest stage sets the pace, which has the head and, where layers are not shared out
  evenly, one layer more than others.
- All wait for the slowest GPU: each doubling of the nodes costs `SLOWEST`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from utils.theory.arguments import check_amount
from utils.theory.flops import flops_per_token, utilization
from utils.theory.scale.collectives import (
    ALONE,
    BACKWARD,
    FORWARD,
    Collective,
    context_collectives,
    data_collectives,
    exposed_ends,
    pipeline_sends,
    tensor_collectives,
)
from utils.theory.scale.communication import ACROSS, INSIDE, Cost
from utils.theory.scale.compute import compute_seconds
from utils.theory.scale.efficiency import efficiency
from utils.theory.scale.hardware import Machine
from utils.theory.scale.job import Job
from utils.theory.scale.operations import layer_operations
from utils.theory.scale.software import FUSED, named_software
from utils.theory.units import format_seconds, shown

#: Share by which compute is slower while a collective runs beside it: 18.9% on average on A100, H100, MI210 and MI250
#: (Lee et al., "Characterizing Compute-Communication Overlap in GPU-Accelerated Distributed Deep Learning",
#: arXiv:2507.03114, abstract).
CONTENTION = 0.189
#: For each doubling of the nodes: T5-11B lost 7% of its TFLOPS from 8 to 512 GPUs, six doublings (Zhao et al., "PyTorch
#: FSDP", VLDB 2023, arXiv:2304.11277, section 5.4). So this one number is a published run's too; it is in no row.
SLOWEST = 0.07 / 6
COMPUTE = "compute"
MOST_SHARE = 1.5  # above 1 the job's bytes are overrated; `calibration` lets that stand, so that nothing is hidden
_WORTH_NAMING = 0.03  # of the step: less waiting than that binds nothing


@dataclass(frozen=True)
class Prediction:
    """A predicted step.

    seconds: of the step. parts: seconds by what takes them; they add up to it. communication: seconds of all
    collectives by level ("inside", "across"), each alone. peak: operations per second of a GPU in the job's precision.
    """

    job: Job
    seconds: float
    parts: dict[str, float]
    communication: dict[str, float]
    peak: float

    @property
    def tokens(self) -> int:
        """Of the step, all GPUs together."""
        return self.job.tokens

    @property
    def gpus(self) -> int:
        return self.job.gpus

    @property
    def mfu(self) -> float:
        """Model FLOPs, 6 N + 12 L h s a token (`flops.flops_per_token`), over the peak."""
        return utilization(flops(self.job)[0], self.seconds, self.gpus, self.peak)

    @property
    def hfu(self) -> float:
        """The same with what is computed again."""
        return utilization(flops(self.job)[1], self.seconds, self.gpus, self.peak)

    @property
    def tokens_per_second(self) -> float:
        """Of all GPUs."""
        return self.tokens / self.seconds

    @property
    def per_gpu(self) -> float:
        """Tokens per second of one GPU."""
        return self.tokens_per_second / self.gpus

    @property
    def exposed(self) -> float:
        """Seconds in which a GPU only waits for collectives."""
        return self.parts["waiting inside"] + self.parts["waiting across"]

    def __repr__(self) -> str:
        shares = sorted(self.parts.items(), key=lambda part: -part[1])
        named = ", ".join(f"{name} {part / self.seconds:.0%}" for name, part in shares if part >= 0.01 * self.seconds)
        return (
            f"a step of {format_seconds(self.seconds)}: {named}; {self.per_gpu:,.0f} tokens/s on each of {self.gpus:,} "
            f"GPUs, MFU {self.mfu:.0%}"
        )

    @property
    def binds(self) -> str:
        """ "inside" or "across", whichever link makes a GPU wait for more than 3% of the step; else "compute"."""
        level = max((INSIDE, ACROSS), key=lambda name: self.parts[f"waiting {name}"])
        return level if self.parts[f"waiting {level}"] > _WORTH_NAMING * self.seconds else COMPUTE


def predict(job: Job, machine: Machine, of_peak: float | None = None, of_peak_bf16: float | None = None) -> Prediction:
    """The step of `job` on `machine`.

    of_peak: share of the peak that its matrices reach; left out, what `efficiency` holds for the GPU type and the
    precision. of_peak_bf16: of those that stay in 16 bit in an fp8 job.
    """
    if not isinstance(job, Job) or not isinstance(machine, Machine):
        raise ValueError(
            f"job is {shown(job)}, machine {shown(machine)}; give a Job and a Machine, such as machine('H100 80GB')"
        )
    for name, share in (("of_peak", of_peak), ("of_peak_bf16", of_peak_bf16)):
        if share is not None:
            check_amount(name, share, "the share of the peak that matrices reach", "such as 0.6")
            if float(share) > MOST_SHARE:
                raise ValueError(
                    f"{name} is {shown(share)}; it is the share of the peak that matrices reach: give at most "
                    f"{MOST_SHARE}, such as 0.6 for 60%"
                )
    gpu = machine.gpu
    of_peak = efficiency(gpu, job.precision) if of_peak is None else float(of_peak)
    if of_peak_bf16 is None:
        of_peak_bf16 = of_peak if job.precision == "bf16" else efficiency(gpu, "bf16")
    of_peak_bf16 = float(of_peak_bf16)
    took = compute_seconds(job, machine, of_peak, of_peak_bf16)
    stage, m = job.stage_layers, job.accumulation
    phases = {FORWARD: stage * took.forward.total, BACKWARD: stage * (took.backward.total + took.again.total)}
    phases[BACKWARD] += took.head
    waits = _Waits()
    tensor = tensor_collectives(job, machine)
    waits.add(tensor, m * stage, 1 - named_software(job.software).overlaps_tensor)
    context = context_collectives(job, machine)
    attention = took.forward.attention + took.backward.attention + took.again.attention
    waits.add(context, m * stage, max(0.0, 1 - attention / context.seconds) if context.seconds else 0.0)
    hidden = named_software(job.software).overlaps_pipeline and job.interleaved > 1
    waits.add(pipeline_sends(job, machine), m, 0.0 if hidden else 1.0)
    contention = waits.beside(data_collectives(job, machine), phases, exposed_ends(job, machine))

    layers = m * stage
    parts = {
        "matrices": layers * (took.forward.matrices + took.backward.matrices),
        "attention": layers * (took.forward.attention + took.backward.attention),
        "memory traffic": layers * (took.forward.moved + took.backward.moved),
        "recomputation": layers * took.again.total,
        "head": m * took.head,
        "optimizer": took.optimizer,
        "waiting inside": waits.waiting[INSIDE],
        "waiting across": waits.waiting[ACROSS],
        "contention": contention,
    }
    one = stage * (took.forward.total + took.backward.total + took.again.total + tensor.seconds)
    parts["pipeline bubble"] = (job.pipeline - 1) / job.interleaved * one
    total = math.fsum(parts.values())
    parts["slowest GPU"] = total * SLOWEST * math.log2(max(1.0, job.gpus / machine.gpus_per_node))
    seconds = total + parts["slowest GPU"]
    return Prediction(job, seconds, parts, waits.alone, gpu.peak_fp8 if job.precision == "fp8" else gpu.peak)


def flops(job: Job) -> tuple[float, float]:
    """(model FLOPs, with those that run again) of a step: 6 N + 12 L h s a token, and what of its third is repeated.

    Again: "full" all of the layers, "half" half of them, "operations" every second matrix, "attention" the scores.
    """
    model = job.model
    width = model.heads * model.head_dim
    each = flops_per_token(model.parameters, model.layers, width, job.sequence)
    scores = 4 * model.layers * width * job.sequence
    matrices = 2 * model.layers * model.parameters_per_layer
    again = {
        "none": 0.0,
        "attention": scores,
        "operations": 2 * model.layers * layer_operations(model, FUSED).every_second,
        "half": (matrices + scores) / 2,
        "full": matrices + scores,
    }[job.again]
    return each * job.tokens, (each + again) * job.tokens


class _Waits:
    """Seconds by level: of all collectives alone, and of waiting for them."""

    def __init__(self) -> None:
        self.alone = {INSIDE: 0.0, ACROSS: 0.0}
        self.waiting = {INSIDE: 0.0, ACROSS: 0.0}

    def add(self, cost: Cost, times: float, exposed: float) -> None:
        self.alone[cost.level] += times * cost.seconds
        self.waiting[cost.level] += times * cost.seconds * exposed

    def beside(self, collectives: list[Collective], phases: dict[str, float], ends: list[Collective]) -> float:
        """Count them; those of one phase and one pace share its compute. Returns what they slow it down by.

        ends: what of them nothing hides. A phase waits for these, or for what is longer than its compute, whichever is
        more; never for longer than its collectives take.
        """
        contention = 0.0
        for phase in (ALONE, FORWARD, BACKWARD):
            room = phases.get(phase, 0.0)
            for times in sorted({each.times for each in collectives if each.phase == phase}):
                together = [each for each in collectives if each.phase == phase and each.times == times]
                needed = math.fsum(each.cost.seconds for each in together)
                hidden = min(needed, room)
                contention += times * CONTENTION * hidden
                for each in together:
                    self.add(each.cost, times, 1 - hidden / needed if needed else 0.0)
                kinds = [each.kind for each in together]
                last = [each for each in ends if each.phase == phase and each.kind in kinds]
                bare = math.fsum(each.cost.seconds for each in last)
                more = max(0.0, min(bare, needed) - (needed - hidden)) / bare if bare else 0.0
                for each in last:
                    self.waiting[each.cost.level] += min(each.times, times) * more * each.cost.seconds
        return contention
