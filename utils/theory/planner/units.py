"""Jobs of TP x PP x CP units, data parallelism around them: memory of a GPU, bytes between units, and the step.

One unit of tensor x pipeline x context GPUs holds one replica. What data parallelism adds is between units: each GPU
exchanges the gradients of its own part with the GPUs that hold the same part in other units.

Memory: states of the first stage's parameters, optimizer and master weights shared by the data-parallel ranks (zero1);
activations as `theory.activations` counts them, with sequence parallelism; the first stage of a pipeline of p stages
keeps those of p micro-batches (Korthikanti et al., arXiv:2205.05198, section 4.2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from utils.theory.activations import activation_bytes
from utils.theory.architecture import Architecture
from utils.theory.arguments import check_divisor, check_whole
from utils.theory.memory import SHARDED, model_states
from utils.theory.planner.ask import Ask, asked
from utils.theory.scale.collectives import data_collectives, tensor_collectives, tensor_times
from utils.theory.scale.communication import group_cost
from utils.theory.scale.hardware import Gpu
from utils.theory.scale.job import Job
from utils.theory.scale.software import named_software
from utils.theory.scale.step import Prediction, predict
from utils.theory.traffic import collective_bytes
from utils.theory.units import shown


@dataclass(frozen=True)
class HybridJob:
    """One way to cut a job into units.

    memory: bytes of a GPU at the peak. data_bytes: that one GPU sends in a step for data parallelism; `unit_bytes` is
    of all GPUs of a unit.
    """

    ask: Ask
    job: Job
    memory: float
    data_bytes: float

    @property
    def units(self) -> int:
        """Replicas: the data-parallel ranks."""
        return self.job.ranks

    @property
    def unit_bytes(self) -> float:
        """Bytes that all GPUs of a unit send to other units in a step: a ring leaves a unit once, whatever its parts of
        a sequence (CP), which hold the same weights."""
        return self.data_bytes * self.job.tensor * self.job.pipeline if self.units > 1 else 0.0

    @property
    def fits(self) -> bool:
        return self.memory <= self.ask.budget

    @cached_property
    def prediction(self) -> Prediction:
        return predict(self.job, self.ask.machine)

    @cached_property
    def data_seconds(self) -> float:
        """Of the step's data-parallel collectives, each alone: the part that data parallelism adds, hidden or not."""
        return sum(each.times * each.cost.seconds for each in data_collectives(self.job, self.ask.machine))

    def __repr__(self) -> str:
        job = self.job
        fit = "fits" if self.fits else f"lacks {(self.memory - self.ask.budget) / 1e9:.1f} GB"
        return (
            f"{self.units} unit{'s' if self.units > 1 else ''} of TP {job.tensor} x PP {job.pipeline} x CP "
            f"{job.context}: {self.memory / 1e9:.1f} GB on a GPU ({fit}); each unit sends {self.unit_bytes / 1e9:,.1f} "
            f"GB to the others, {_plain(self.data_seconds, 2)} s of communication; a step of "
            f"{_plain(self.prediction.seconds, 3)} s, MFU {self.prediction.mfu:.0%}"
        )


def hybrid_job(
    model: str | Architecture,
    gpus: int,
    tensor: int = 1,
    pipeline: int = 1,
    context: int = 1,
    *,
    strategy: str = "zero1",
    micro_batch: int = 1,
    interleaved: int = 1,
    again: str = "none",
    gpus_per_node: int | None = None,
    gpu: str | Gpu = "H100 80GB",
    memory: float | None = None,
    network: float = 3200,
    sequence: int = 4096,
    global_batch: int | None = None,
    reserve: float = 0.1,
    software: str = "NeMo",
) -> HybridJob:
    """The job cut into units of tensor x pipeline x context GPUs; the other arguments as for `plan` and `scale.Job`.

    strategy: of the data-parallel ranks, "ddp" or "zero1", as Megatron-LM has them. global_batch: one sequence for each
    unit, times `pipeline`, if left out. Raises ValueError, in one sentence.
    """
    if strategy not in ("ddp", "zero1"):
        raise ValueError(f"strategy is {shown(strategy)}; around units it is ddp or zero1: choose one of them")
    sizes = {"tensor": tensor, "pipeline": pipeline, "context": context, "micro_batch": micro_batch}
    for name, size in sizes.items():
        check_whole(name, size, "a size of the job", most=10**6)
    tensor, pipeline, context, micro_batch = (int(size) for size in sizes.values())  # numpy's overflow
    ask = asked(model, gpus, gpus_per_node, gpu, memory, network, None, sequence, gpus, reserve)
    gpus, sequence = ask.gpus, ask.sequence
    ranks = max(1, gpus // (tensor * pipeline * context))
    if global_batch is not None:
        check_whole("global_batch", global_batch, "sequences of a step, all units together", most=10**7)
    batch = ranks * pipeline * micro_batch if global_batch is None else int(global_batch)
    if batch % (ranks * micro_batch):
        raise ValueError(
            f"global_batch is {batch}, which {ranks} units with micro-batches of {micro_batch} do not share evenly: "
            f"give a multiple of {ranks * micro_batch}"
        )
    check_divisor("context", context, sequence, "sequence", "each GPU takes an equal part of a sequence")
    job = Job(
        ask.model, gpus, sequence, micro_batch, batch // (ranks * micro_batch), strategy, None, tensor, pipeline,
        context, interleaved, again, software=software,
    )  # fmt: skip
    return HybridJob(replace(ask, global_batch=batch), job, unit_memory(job), data_bytes(job))


def hybrid_jobs(model: str | Architecture, gpus: int, **more: object) -> list[HybridJob]:
    """All units of tensor 1, 2, 4, 8 within a node and pipelines of powers of two that the GPUs allow, fastest first.

    Those that fit come before those that do not. Arguments as for `hybrid_job`, without the sizes of the unit; where
    none is possible its ValueError for the smallest unit.
    """
    for name in ("tensor", "pipeline"):
        if name in more:
            raise ValueError(
                f"{name} is {shown(more[name])}, but all units are tried here: leave it out, or give it to hybrid_job"
            )
    named = ("gpus_per_node", "gpu", "memory", "network", "sequence", "reserve")
    ask = asked(model, gpus, **{name: more[name] for name in named if name in more})  # type: ignore[arg-type]
    found, refused = [], []
    for tensor in (size for size in (1, 2, 4, 8) if size <= ask.gpus_per_node):
        for pipeline in (2**power for power in range(7)):
            try:
                found.append(hybrid_job(model, gpus, tensor, pipeline, **more))  # type: ignore[arg-type]
            except ValueError as error:
                refused.append(error)  # heads, layers, GPUs or batch do not divide
    if not found:
        raise refused[0]
    return sorted(found, key=lambda each: (not each.fits, each.prediction.seconds))


def unit_memory(job: Job) -> float:
    """Bytes of a GPU of the first stage at the peak."""
    model, stage = job.model, job.stage_layers
    held = (stage * model.parameters_per_layer + _ends(job)) / job.tensor
    ranks = job.ranks * job.context if "optimizer" in SHARDED[job.strategy] else 1
    states = model_states(held, ranks, job.strategy if ranks > 1 else "ddp").total
    kept = activation_bytes(
        model,
        job.sequence // job.context,
        job.micro_batch,
        {"half": "full", "operations": "selective", "attention": "selective"}.get(job.again, job.again),
        implementation="paper",
        tensor_parallel=job.tensor,
        sequence_parallel=True,
    )
    in_flight = min(job.pipeline, job.accumulation)
    last = 0.0 if job.pipeline > 1 else kept.logits + kept.at_loss + kept.head
    return states + in_flight * stage * kept.per_layer + kept.recomputed + last


def data_bytes(job: Job) -> float:
    """Bytes that one GPU sends in a step for data parallelism: 2 (n - 1)/n of its gradients, zero1 in two halves."""
    held, ranks = job.model.parameters / (job.tensor * job.pipeline), job.ranks * job.context
    each = named_software(job.software).reduced_bytes
    if job.strategy == "ddp":
        return collective_bytes("all_reduce", each * held, ranks)
    return collective_bytes("reduce_scatter", each * held, ranks) + collective_bytes("all_gather", 2 * held, ranks)


def placements(found: HybridJob) -> dict[str, float]:
    """Seconds of a step's collectives, each alone, by which dimension is the outer one; without what stages send.

    "data": tensor-parallel neighbours share a node, data-parallel ranks are a unit apart. "tensor": the other way
    round, as if ranks were numbered so. The bytes are the same; the links they go over are not.
    """
    if not isinstance(found, HybridJob):
        raise ValueError(f"found is {shown(found)}; give what hybrid_job returns")
    job, machine = found.job, found.ask.machine
    layers = job.accumulation * job.stage_layers
    inner = tensor_collectives(job, machine).seconds * layers
    size = 2 * job.local_tokens * job.model.hidden
    apart = job.gpus // job.tensor
    outer = group_cost("all_reduce", size, job.tensor, apart, machine).seconds * tensor_times(job) * layers
    kinds = {"ddp": (("all_reduce", 2),), "zero1": (("reduce_scatter", 2), ("all_gather", 2))}[job.strategy]
    held = job.model.parameters / (job.tensor * job.pipeline)
    data = {
        stride: sum(group_cost(kind, each * held, job.ranks, stride, machine).seconds for kind, each in kinds)
        for stride in (1, job.unit)
    }
    return {"data": inner + data[job.unit], "tensor": outer + data[1]}


def _plain(number: float, digits: int) -> str:
    """So many digits at least, and never an exponent for a large number."""
    return f"{number:,.0f}" if number >= 10**digits else f"{number:.{digits}g}"


def _ends(job: Job) -> int:
    """Parameters of the first stage that no layer has: all of them without a pipeline, else the embeddings."""
    model = job.model
    if job.pipeline == 1:
        return model.parameters - model.layers * model.parameters_per_layer
    return model.embedding_parameters + model.learned_positions * model.hidden
