"""How DistributedDataParallel lays gradients into buckets, each of which it all-reduces as one.

Source of the rule: PyTorch 2.13.0, torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size, and
torch/nn/parallel/distributed.py for the caps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from utils.theory.architecture import Architecture, check_model
from utils.theory.arguments import check_whole, check_yes_or_no, is_whole
from utils.theory.units import MiB, shown

FIRST_BUCKET_BYTES = 1 * MiB
BUCKET_CAP_BYTES = 25 * MiB


def ddp_buckets(
    tensor_bytes: Sequence[int],
    first_bucket_bytes: int | None = None,
    bucket_cap_bytes: int | None = None,
    first_iteration: bool = False,
) -> tuple[tuple[int, ...], ...]:
    """The buckets in the order in which they fill, each as positions in `tensor_bytes`.

    A bucket closes when its size reaches its cap, so that it is as large as the cap or larger: "cap" is PyTorch's word,
    but the last bucket alone is smaller. A tensor is never split.

    Args:
        tensor_bytes: of the gradients, in the order in which backward finishes them: that of
            `gradient_bytes(architecture)` if it runs through the model backwards. They share one type and device;
            PyTorch fills separate buckets for each.
        first_bucket_bytes, bucket_cap_bytes: the caps of the first and of the other buckets. Left out, 1 MiB and
            25 MiB; a bucket_cap_bytes that is given holds for the first too, as DDP's bucket_cap_mb does.
        first_iteration: DDP's first step takes one bucket for all, unless find_unused_parameters is set, and so
            overlaps nothing; the buckets are laid anew from the order in which the gradients became ready.

    Raises ValueError, in one sentence, for what is no list of sizes, and for caps below 1 byte.
    """
    sizes = _sizes(tensor_bytes)
    check_yes_or_no("first_iteration", first_iteration)
    cap = BUCKET_CAP_BYTES if bucket_cap_bytes is None else bucket_cap_bytes
    first = first_bucket_bytes
    if first is None:
        first = FIRST_BUCKET_BYTES if bucket_cap_bytes is None else cap
    for name, value in (("bucket_cap_bytes", cap), ("first_bucket_bytes", first)):
        check_whole(name, value, "the size in bytes at which a bucket closes")
    if first_iteration:
        return (tuple(range(len(sizes))),) if sizes else ()
    buckets: list[tuple[int, ...]] = []
    filling: list[int] = []
    held = 0
    for i, size in enumerate(sizes):
        filling.append(i)
        held += size
        if held >= (cap if buckets else first):
            buckets.append(tuple(filling))
            filling, held = [], 0
    return tuple([*buckets, tuple(filling)] if filling else buckets)


def bucket_bytes(buckets: Sequence[Sequence[int]], tensor_bytes: Sequence[int]) -> tuple[int, ...]:
    """The size of each bucket that `ddp_buckets` laid, in bytes."""
    sizes = _sizes(tensor_bytes)
    try:
        places = [[place for place in bucket] for bucket in buckets]
    except TypeError:
        places = [[None]]
    flat = [place for bucket in places for place in bucket]
    if not all(is_whole(place) and 0 <= place < len(sizes) for place in flat) or len(set(flat)) < len(flat):
        raise ValueError(
            f"buckets is {shown(buckets)}, which are no positions among {len(sizes)} tensors, each once: give what "
            "ddp_buckets returned for the same sizes"
        )
    return tuple(sum(sizes[place] for place in bucket) for bucket in places)


def gradient_bytes(architecture: Architecture, bytes_per_element: int = 4) -> tuple[int, ...]:
    """The sizes of the gradients, the last registered tensor first: about the order in which backward finishes them."""
    check_model(architecture, "architecture")
    check_whole("bytes_per_element", bytes_per_element, "the size of a gradient's element", most=64)
    return tuple(tensor.parameters * int(bytes_per_element) for tensor in reversed(architecture.tensors))


def _sizes(tensor_bytes: Sequence[int]) -> list[int]:
    if not isinstance(tensor_bytes, Iterable) or isinstance(tensor_bytes, str | bytes):
        raise ValueError(f"tensor_bytes is {shown(tensor_bytes)}; give a list of sizes in bytes, such as [4096, 512]")
    sizes = list(tensor_bytes)
    for i, size in enumerate(sizes):
        check_whole(f"tensor_bytes[{i}]", size, "a tensor's size in bytes", least=0)
    return [int(size) for size in sizes]
