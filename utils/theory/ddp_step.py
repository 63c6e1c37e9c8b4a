"""A step of DDP for a model, a cluster and a bucket cap: its buckets, the bytes they hold, what of them is exposed.

    step = ddp_step(PRESETS["Llama-2-7B"], 64, Link(50 * GB), tokens=4096, flops=0.4 * PEAK_FLOPS["H100"])
    len(step.buckets), step.held(False), step.step.exposed

Every tensor stands for itself: backward finishes its gradient after the tensors registered after it. A matrix of P
numbers takes 2 P operations a token forward and 4 P backward (Kaplan et al., arXiv:2001.08361, section 2.1); looking up
an embedding, norms, biases and the attention scores are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.theory.architecture import Architecture
from utils.theory.arguments import check_amount, check_whole, check_yes_or_no
from utils.theory.buckets import bucket_bytes, ddp_buckets, gradient_bytes
from utils.theory.sharing import Link
from utils.theory.step_time import LawTerms, Layer, Step, law_terms, simulate_step
from utils.theory.units import shown

LOOKED_UP = ("embedding.", "positions.")  # begin the names of tensors of which a token uses one row


@dataclass(frozen=True)
class DdpStep:
    """A simulated step, its buckets in bytes in the order in which they fill, and the terms of the law."""

    step: Step
    law: LawTerms
    buckets: tuple[int, ...]
    gradient_bytes: int

    @property
    def hidden(self) -> float:
        """The part of the communication that compute hides, from 0 to 1; 1 without communication."""
        return 1 - self.step.exposed / self.step.communication if self.step.communication else 1.0

    def held(self, gradient_as_bucket_view: bool) -> int:
        """Bytes of gradients and buckets together: once the gradients if they are views of the buckets, else twice."""
        check_yes_or_no("gradient_as_bucket_view", gradient_as_bucket_view)
        return self.gradient_bytes if gradient_as_bucket_view else self.gradient_bytes + sum(self.buckets)


def ddp_step(
    architecture: Architecture,
    world_size: int,
    link: Link,
    tokens: int,
    flops: float,
    bucket_cap_bytes: int | None = None,
    bytes_per_element: int = 4,
) -> DdpStep:
    """One step of `architecture` on `world_size` ranks joined by `link`, as from the second step on.

    Args:
        tokens: that each rank computes in the step.
        flops: operations per second that a rank really does: its peak times its utilization.
        bucket_cap_bytes: as DDP's bucket_cap_mb; left out, 1 MiB for the first bucket and 25 MiB for the others.
        bytes_per_element: of a gradient as it is sent: 4, or 2 in 16 bit.

    Raises ValueError, in one sentence, for a value out of range.
    """
    if not isinstance(architecture, Architecture):
        raise ValueError(f"architecture is {shown(architecture)}; give one, such as PRESETS['Llama-2-7B']")
    check_whole("tokens", tokens, "how many tokens a rank computes in a step")
    check_amount("flops", flops, "operations per second of a rank", "such as 0.4 * PEAK_FLOPS['H100']")
    sizes = gradient_bytes(architecture, bytes_per_element)
    laid = ddp_buckets(sizes, bucket_cap_bytes=bucket_cap_bytes)
    layers = _layers(architecture, laid, sizes, int(tokens) / float(flops))
    numbers = [[len(laid) - 1 - bucket] for bucket in range(len(laid))]
    return DdpStep(
        simulate_step(layers, world_size, link, buckets=numbers),
        law_terms(layers, world_size, link, buckets=numbers),
        bucket_bytes(laid, sizes),
        sum(sizes),
    )


def _layers(
    architecture: Architecture, laid: Sequence[Sequence[int]], sizes: Sequence[int], seconds_per_operation: float
) -> list[Layer]:
    """In forward order one layer for the tensors of each bucket; tied embeddings multiply once more, at the end.

    Only the end of a bucket matters to a step, so that its tensors count as one. seconds_per_operation: for one
    operation on each token.
    """
    tensors, layers = architecture.tensors, []
    for bucket in reversed(laid):
        mine = [tensors[len(sizes) - 1 - i] for i in bucket]
        matrices = [t for t in mine if len(t.shape) > 1 and not t.name.startswith(LOOKED_UP)]
        seconds = 2 * sum(t.parameters for t in matrices) * seconds_per_operation
        layers.append(Layer(seconds, gradient_bytes=sum(sizes[i] for i in bucket)))
    if architecture.tied_embeddings:
        layers.append(Layer(2 * architecture.embedding_parameters * seconds_per_operation))
    return layers
