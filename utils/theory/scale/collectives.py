"""The collectives of a job's step: which, how many bytes, among whom, and beside which phase of compute.

Bytes per parameter on the wire: 2 gathered, the software's `reduced_bytes` reduced. Each collective has NCCL's latency:
FSDP has one for each layer and the root, DDP and ZeRO-1 and 2 one for each bucket. What a GPU hands on to one other
(context and pipeline parallelism) has none. Parameters of a GPU: those of its tensor-parallel part of its stage.
Data-parallel groups join the same part of all replicas (and, with context parallelism, of all parts of a sequence),
`tensor` GPUs apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.scale.communication import ACROSS, INSIDE, Cost, group_cost
from utils.theory.scale.hardware import Machine
from utils.theory.scale.job import LAYERS_AGAIN, Job
from utils.theory.scale.software import LAYER, Software, named_software

FORWARD, BACKWARD, ALONE = "forward", "backward", "alone"
_GATHERED = 2  # bytes of a weight on the wire


@dataclass(frozen=True)
class Collective:
    """times: in a step. phase: beside which it runs; "alone" beside none, so that all wait for it."""

    kind: str
    cost: Cost
    times: int
    phase: str


def data_collectives(job: Job, machine: Machine) -> list[Collective]:
    """Of the data-parallel dimension, of one GPU in a step."""
    if job.ranks * job.context == 1:
        return []
    software: Software = named_software(job.software)
    held = job.model.parameters / (job.tensor * job.pipeline)
    m, ranks, stride = job.accumulation, job.ranks * job.context, job.tensor

    def among(kind: str, each: float, pieces: float, count: int = ranks, apart: int = stride) -> Cost:
        return group_cost(kind, each * held, count, apart, machine, pieces)

    def reduction(kind: str, cost: Cost, times: int) -> Collective:
        return Collective(kind, cost, times, BACKWARD if software.reduces else ALONE)

    def gather(cost: Cost, times: int, phase: str) -> Collective:
        return Collective("all_gather", cost, times, phase if phase in software.gathers else ALONE)

    reduced = software.reduced_bytes
    buckets = _buckets(job, software, reduced * held)
    if job.strategy == "ddp":
        return [reduction("all_reduce", among("all_reduce", reduced, buckets), 1)]
    if job.strategy in ("zero1", "zero2"):
        times = m if job.strategy == "zero2" else 1
        scatter = reduction("reduce_scatter", among("reduce_scatter", reduced, buckets), times)
        return [scatter, gather(among("all_gather", _GATHERED, buckets), 1, FORWARD)]
    group = ranks if job.strategy != "hsdp" else int(job.shard_size or 1) * job.context
    alone = software.each_tensor is not None  # every tensor by itself, or a layer at once
    pieces = len(job.model.tensors) / job.pipeline if alone else _units(job)
    whole = among("all_gather", _GATHERED, pieces, group)
    whole = Cost(whole.seconds + pieces * (software.each_tensor or 0.0), whole.level)
    every = [
        gather(whole, m, FORWARD),
        gather(whole, m, BACKWARD),
        reduction("reduce_scatter", among("reduce_scatter", reduced, pieces, group), m),
    ]
    if software.gathers_again and LAYERS_AGAIN[job.again]:
        every.append(gather(whole * LAYERS_AGAIN[job.again], m, BACKWARD))
    if group < ranks:
        between = among("all_reduce", reduced / group, pieces, ranks // group, stride * group)
        every.append(reduction("all_reduce", between, 1 if software.replicas_once else m))
    return every


def _units(job: Job) -> float:
    """What FSDP gathers at once on a GPU: its layers, and the root."""
    return job.model.layers / job.pipeline + 1


def _buckets(job: Job, software: Software, gradients: float) -> float:
    """Into how many collectives DDP and ZeRO-1 and 2 cut a GPU's gradients of so many bytes."""
    if software.bucket == LAYER:
        return _units(job)
    return max(1.0, gradients / float(software.bucket)) if software.bucket else 1.0


def exposed_ends(job: Job, machine: Machine) -> list[Collective]:
    """What of a phase has no compute beside it even so: the first gather of each micro-batch, and a step's last
    reduction.

    fsdp: the root and the first layer are gathered before anything computes. All: the embedding's gradient is there
    last; it is reduced behind the backward pass, with hsdp within its group and then between groups.
    """
    software, model = named_software(job.software), job.model
    ranks = job.ranks * job.context
    if ranks == 1:
        return []
    group = ranks if job.strategy != "hsdp" else int(job.shard_size or 1) * job.context
    last = software.reduced_bytes * model.embedding_parameters / job.tensor
    kind = "all_reduce" if job.strategy == "ddp" else "reduce_scatter"
    ends = []
    if software.reduces:
        ends.append(Collective(kind, group_cost(kind, last, group, job.tensor, machine), 1, BACKWARD))
        if group < ranks:
            between = group_cost("all_reduce", last / group, ranks // group, job.tensor * group, machine)
            ends.append(Collective("all_reduce", between, 1, BACKWARD))
    if job.strategy in ("fsdp", "zero3", "hsdp") and FORWARD in software.gathers:
        root = model.parameters - model.layers * model.parameters_per_layer
        first = _GATHERED * (root + model.parameters_per_layer) / job.tensor
        cost = group_cost("all_gather", first, group, job.tensor, machine)
        ends.append(Collective("all_gather", cost, job.accumulation, FORWARD))
    return ends


def tensor_collectives(job: Job, machine: Machine) -> Cost:
    """Of one layer and micro-batch: an all-reduce behind attention and behind the MLP, forward and backward, and again.

    With sequence parallelism each is a reduce-scatter and an all-gather: the same bytes.
    """
    bytes_ = 2 * job.local_tokens * job.model.hidden
    return group_cost("all_reduce", bytes_, job.tensor, 1, machine) * tensor_times(job)


def tensor_times(job: Job) -> float:
    """All-reduces of one layer and micro-batch: two forward, two backward, and those that recomputation repeats.

    "full": both, but where it stops before the last matrix, the reduce-scatter behind that one is half of one less;
    "operations": the two gathers, since the results of reduce-scatters are kept (torchtitan's list of what is saved).
    """
    whole = 1.5 if named_software(job.software).stops_early else 2.0
    return 5.0 if job.again == "operations" else 4 + LAYERS_AGAIN[job.again] * whole


def context_collectives(job: Job, machine: Machine) -> Cost:
    """Of one layer and micro-batch: keys and values pass round the ring, and again wherever attention runs again;
    backward their gradients too."""
    c, model = job.context, job.model
    if c == 1:
        return Cost(0.0, INSIDE)
    keys = 2 * 2 * job.local_tokens * model.kv_heads * model.head_dim / job.tensor
    again = 1.0 if job.again == "attention" else LAYERS_AGAIN[job.again]
    return _handed_on((3 + again) * (c - 1) * keys, job.tensor * c, job.tensor, machine)


def pipeline_sends(job: Job, machine: Machine) -> Cost:
    """Of one micro-batch: each piece of a stage sends its output to the next, and the gradient back to the one before.

    A tensor-parallel rank sends its part (Narayanan et al., SC21, section 4.1). Stages are the outermost dimension.
    """
    if job.pipeline == 1:
        return Cost(0.0, INSIDE)
    sent = 2 * job.interleaved * 2 * job.local_tokens * job.model.hidden / job.tensor
    return _handed_on(sent, job.gpus, job.gpus // job.pipeline, machine)


def _handed_on(sent: float, span: int, stride: int, machine: Machine) -> Cost:
    """What every GPU sends to the next, `stride` GPUs on, all at once among `span` GPUs of one node or of several.

    From a node so many GPUs send across as lie between two neighbours, and share its network; all wait for them.
    """
    inside = sent / machine.inside_rate
    if span <= machine.gpus_per_node:
        return Cost(inside, INSIDE)
    across = sent / (machine.network_rate / min(stride, machine.gpus_per_node))
    return Cost(across, ACROSS) if across >= inside or stride >= machine.gpus_per_node else Cost(inside, INSIDE)
