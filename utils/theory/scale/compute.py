"""Seconds of compute on one GPU, by what takes them: matrices, attention, bytes through memory, what runs again.

    seconds of a matrix = operations / (efficiency · peak) + bytes / HBM's sustained rate

The efficiency, of matrices alone, is the one number of a GPU type and a precision that is calibrated (`efficiency`).
Forward 2 operations for each parameter and token, backward 4. Attention: 4 s h' operations forward (h' heads times
their size), half of them with a causal mask, backward 2.5 times that, since FlashAttention recomputes the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from utils.theory.architecture import Architecture
from utils.theory.scale.hardware import Machine
from utils.theory.scale.job import LAYERS_AGAIN, Job
from utils.theory.scale.operations import OPTIMIZER, SCORES, Layer, layer_operations, loss_bytes
from utils.theory.scale.software import STANDARD_SHARE, Software, attention_share, named_software


@dataclass(frozen=True)
class Part:
    """Seconds of matrices' arithmetic, of attention, and of bytes moved through memory by all else."""

    matrices: float
    attention: float
    moved: float

    @property
    def total(self) -> float:
        return self.matrices + self.attention + self.moved

    def shares(self, matrices: float, attention: float, moved: float) -> Part:
        """So much of each."""
        return Part(self.matrices * matrices, self.attention * attention, self.moved * moved)


@dataclass(frozen=True)
class Compute:
    """Seconds on one GPU: of one layer for one micro-batch forward, backward and again; of the head; of the optimizer.

    again: what recomputation runs a second time. head: output matrix and loss, of one micro-batch, both ways.
    optimizer: once a step.
    """

    forward: Part
    backward: Part
    again: Part
    head: float
    optimizer: float


def compute_seconds(job: Job, machine: Machine, efficiency: float, efficiency_bf16: float) -> Compute:
    """Of the job on one GPU.

    efficiency: share of the peak that matrices of the job's precision reach; efficiency_bf16: the same in 16 bit, for
    the head of an fp8 job.
    """
    forward, backward, again, head = _of_a_micro_batch(
        job.model, job.sequence, job.local_tokens, job.tensor, job.again, job.precision, named_software(job.software),
        machine, efficiency, efficiency_bf16,
    )  # fmt: skip
    updated = job.model.parameters / (job.tensor * job.pipeline) / job.shards
    optimizer = OPTIMIZER[named_software(job.software).fused_optimizer] * updated / machine.memory_rate
    return Compute(forward, backward, again, head, optimizer)


@lru_cache(maxsize=1024)  # strategies beside each other compute the same
def _of_a_micro_batch(
    model: Architecture,
    sequence: int,
    tokens: int,
    t: int,
    again: str,
    precision: str,
    software: Software,
    machine: Machine,
    efficiency: float,
    efficiency_bf16: float,
) -> tuple[Part, Part, Part, float]:
    """Forward, backward and again of a layer, and the head; t: tensor-parallel GPUs."""
    rate = machine.memory_rate
    layer = layer_operations(model, software.operations)
    peak = machine.gpu.peak_fp8 if precision == "fp8" else machine.gpu.peak
    arithmetic = 2 * layer.parameters * tokens / t / (efficiency * peak)
    streamed = (layer.matrix_bytes * tokens + 2 * layer.parameters) / t / rate  # weights once a pass
    if precision == "fp8":  # forward the inputs, half of the elements; backward these and the outputs' gradients
        streamed += software.quantized_bytes * layer.matrix_bytes / 4 * tokens / t / rate
    attention = _attention(model, sequence, tokens, t, software, machine)
    element = [each * tokens / t / rate for each in layer.element_bytes]
    forward = Part(arithmetic, attention[0], streamed + element[0])
    backward = Part(2 * arithmetic, attention[1], 2 * streamed + element[1])
    logits = tokens * model.vocabulary / t
    head = 6 * logits * model.hidden / (efficiency_bf16 * machine.gpu.peak)
    head += loss_bytes(software) * logits / rate
    return forward, backward, _again(again, software, layer, forward, element[0]), head


def _attention(
    model: Architecture, sequence: int, tokens: int, t: int, software: Software, machine: Machine
) -> tuple[float, float]:
    """(forward, backward) of the scores and what they weigh, of one layer."""
    operations = 4 * sequence * model.heads * model.head_dim / t * tokens
    if software.attention == "standard":
        # Every score is computed, the masked ones too, and passes through memory.
        scores = model.heads / t * sequence * tokens
        arithmetic = operations / (STANDARD_SHARE * machine.gpu.peak)
        forward, backward = (each * scores / machine.memory_rate for each in SCORES)
        return arithmetic + forward, 2 * arithmetic + backward
    causal = operations / 2 / (attention_share(software, machine.gpu.name, model.head_dim) * machine.gpu.peak)
    return causal, 2.5 * causal


def _again(again: str, software: Software, layer: Layer, forward: Part, element: float) -> Part:
    """What of a layer's forward pass runs again. element: seconds of its element-wise operations."""
    whole = 1 - layer.last / layer.parameters if software.stops_early else 1.0
    streamed = forward.moved - element
    if again == "operations":
        second = layer.every_second / layer.parameters
        return Part(second * forward.matrices, 0.0, second * streamed + element)
    if again == "attention":
        return Part(0.0, forward.attention, 0.0)
    times = LAYERS_AGAIN[again]
    return Part(times * whole * forward.matrices, times * forward.attention, times * (whole * streamed + element))
