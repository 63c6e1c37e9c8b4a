"""What frameworks allocate beside exact shares: padding, gathered units, communication buffers, step counters.

Sources. FSDP: Zhao et al., "PyTorch FSDP", arXiv:2304.11277, section 3.2.1 (a gathered unit lies beside the shards) and
PyTorch 2.13, torch/distributed/fsdp/_fully_shard; the rules of the buffers were read off runs of its FSDPMemTracker
under fake tensors. DeepSpeed: deepspeed/runtime/zero/config.py and stage_1_and_2.py. DDP's buckets are in `memory`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from utils.theory.architecture import Tensor
from utils.theory.arguments import check_all, check_amount, check_ranks, check_whole, check_yes_or_no
from utils.theory.units import plain, shown

#: Elements of DeepSpeed's reduce bucket if nothing is configured (reduce_bucket_size).
DEEPSPEED_BUCKET_ELEMENTS = 500_000_000
#: Adam in PyTorch keeps one fp32 step counter for each parameter tensor, on every rank that holds a part of it.
STEP_COUNTER_BYTES = 4
_WIDEST_ELEMENT = 64  # bytes


def padded_shard(shape: tuple[int, ...], ranks: int) -> int:
    """Elements of the largest shard of a tensor under FSDP2, which cuts its first dimension into `ranks` parts.

    Every shard is padded to ceil(rows / ranks) rows for communication: 10 rows on 4 ranks take 4 * 3 = 12. A tensor
    with fewer rows than ranks leaves some of them nothing but padding. A scalar counts as one row.
    """
    check_ranks("ranks", ranks, "a number of GPUs")
    if not isinstance(shape, tuple | list):
        raise ValueError(f"shape is {shown(shape)}; give a tensor's sizes, such as (4096, 11008)")
    for size in shape:
        check_whole("a side of shape", size, "a number of elements")
    rows, rest = (int(shape[0]), math.prod(map(int, shape[1:]))) if shape else (1, 1)
    return -(-rows // int(ranks)) * rest


def fsdp2_shard(tensors: Iterable[Tensor], ranks: int) -> int:
    """Elements that the rank with most holds of these tensors under FSDP2: each tensor is cut, and padded, alone."""
    return sum(padded_shard(tensor.shape, ranks) for tensor in _checked(tensors))


def flat_shard(elements: int, ranks: int, multiple: int = 1) -> int:
    """Elements of each shard of a flat buffer, padded to a multiple of `ranks` · `multiple` in all.

    FSDP1 joins a unit's tensors into one flat parameter so (`multiple` 1); ZeRO-1 and 2 cut flat buffers likewise.
    """
    for name, value in (("elements", elements), ("ranks", ranks), ("multiple", multiple)):
        check_whole(name, value, "a size of a flat buffer")
    return -(-int(elements) // (int(ranks) * int(multiple))) * int(multiple)


def gathered_share(ranks: int, units: int, prefetched: int = 0) -> float:
    """The share of all parameters that a rank holds in shards and gathered copies: 1/N + (1 + prefetched) / L.

    ranks: N. units: L, of one size. prefetched: units gathered ahead of the one in use: 0 in FSDP2's forward pass on
    the default settings when nothing overlaps, 1 in its backward pass, which prefetches by default. At most L units can
    be gathered. Storages measured with 4 units: 0.75 (N = 2) and 0.50 (N = 4) forward, 1.00 and 0.75 backward.
    """
    check_ranks("ranks", ranks, "a number of GPUs")
    check_whole("units", units, "a number of equal units")
    check_whole("prefetched", prefetched, "a number of units", least=0)
    return 1 / int(ranks) + min(1 + int(prefetched), int(units)) / int(units)


@dataclass(frozen=True)
class UnitBuffers:
    """Bytes that FSDP allocates for one unit beside its shard, for as long as it needs them.

    gathered: the whole parameters with their padding, while the unit computes. all_gather: what a prefetched unit is
    gathered into, before it is cut into parameters. reduce_scatter: the whole gradients with their padding, in the
    precision in which they are reduced.
    """

    gathered: int
    all_gather: int
    reduce_scatter: float


def unit_buffers(
    tensors: Iterable[Tensor], ranks: int, gathered_bytes: int = 2, reduced_bytes: float = 4
) -> UnitBuffers:
    """The buffers of a unit of these tensors. gathered_bytes, reduced_bytes: per element, of weights and gradients."""
    check_ranks("ranks", ranks, "a number of GPUs")
    check_whole("gathered_bytes", gathered_bytes, "bytes per element", most=_WIDEST_ELEMENT)
    check_amount("reduced_bytes", reduced_bytes, "bytes per element", "such as 4", least=0)
    padded = int(ranks) * fsdp2_shard(tensors, ranks)
    return UnitBuffers(int(gathered_bytes) * padded, int(gathered_bytes) * padded, plain(reduced_bytes) * padded)


def step_counters(tensors: Iterable[Tensor]) -> int:
    """Bytes of Adam's step counters: 4 for each tensor, however it is sharded."""
    return STEP_COUNTER_BYTES * len(_checked(tensors))


def _checked(tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    return check_all("tensors", tensors, Tensor, 'such as PRESETS["Llama-2-7B"].layer_tensors')


def deepspeed_reduce_buckets(
    gradient_bytes: float = 2,
    bucket_elements: int = DEEPSPEED_BUCKET_ELEMENTS,
    overlap_comm: bool = False,
) -> float:
    """Bytes of the flat buffers in which DeepSpeed's ZeRO-1 and 2 gather gradients for reduction, during backward.

    One buffer of `bucket_elements`, however small the model; two with `overlap_comm`, one filling while one is sent.
    (With `contiguous_gradients`, the default of stage 2.) A gradient larger than the bucket is reduced on its own.
    """
    check_amount("gradient_bytes", gradient_bytes, "bytes per gradient", "such as 2", least=0)
    check_whole("bucket_elements", bucket_elements, "a number of elements")
    check_yes_or_no("overlap_comm", overlap_comm)
    return (2 if overlap_comm else 1) * int(bucket_elements) * plain(gradient_bytes)
