"""Megatron-LM's theoretical memory.

Source: NVIDIA/Megatron-LM, megatron/training/theoretical_memory_usage.py (00caa53; for dense models the
rules are those of d98e8a6).
"""

from __future__ import annotations

from utils.theory.arguments import check_divisor
from utils.theory.explain import Estimate, estimate
from utils.theory.peers.arguments import count, flags, group, state
from utils.theory.units import MiB


def megatron(
    hidden: int,
    layers: int,
    heads: int,
    ffn: int,
    padded_vocabulary: int,
    data_parallel: int = 1,
    distributed_optimizer: bool = False,
    query_groups: int | None = None,
    kv_channels: int | None = None,
    swiglu: bool = False,
    rms_norm: bool = False,
    untied: bool = False,
    sequence: int = 2048,
    micro_batch: int = 1,
    sequence_parallel_and_selective: bool = False,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    virtual_pipeline: int | None = None,
    microbatches: int | None = None,
) -> Estimate:
    """Megatron-LM's theoretical memory of a dense model: 18 B per parameter; its distributed optimizer: 6 + 12 / d.

    padded_vocabulary: as Megatron pads it, to a multiple of 128 x tensor ranks. kv_channels: the head's width, hidden /
    heads if None. query_groups: heads of keys, `heads` if None. data_parallel: d. The rest as its command line has it;
    mixtures of experts, latent attention and multi-token prediction are left out. A log of core r0.10 counts a bias in
    every norm, RMSNorm or not: there `rms_norm` is False.
    """
    whole = {"hidden": hidden, "layers": layers, "heads": heads, "ffn": ffn, "padded_vocabulary": padded_vocabulary}
    whole |= {"sequence": sequence, "micro_batch": micro_batch}
    h, layers, heads, ffn, v, s, b = (count(name, value) for name, value in whole.items())
    ranks = {"data_parallel": data_parallel, "tensor_parallel": tensor_parallel, "pipeline_parallel": pipeline_parallel}
    d, tp, pp = (group(name, value) for name, value in ranks.items())
    flags(
        distributed_optimizer=distributed_optimizer,
        swiglu=swiglu,
        rms_norm=rms_norm,
        untied=untied,
        sequence_parallel_and_selective=sequence_parallel_and_selective,
    )
    groups = heads if query_groups is None else count("query_groups", query_groups)
    check_divisor("query_groups", groups, heads, "heads", "each group of heads shares its keys")
    for name, value in (("virtual_pipeline", virtual_pipeline), ("microbatches", microbatches)):
        if value is not None:
            count(name, value)
    channels = h // heads if kv_channels is None else count("kv_channels", kv_channels)
    norm = 1 if rms_norm else 2
    attention = 2 * h * h * ((1 + groups / heads) * (channels * heads / h))
    block = (2 * h * (ffn * (1.5 if swiglu else 1) + norm) + attention) * layers + norm * h
    held = (block / pp + v * h * (2 if untied and pp == 1 else 1)) / tp
    share = d if distributed_optimizer else 1

    size = s * b * h
    per_layer = size * (18 + 4 * (ffn / h)) if sequence_parallel_and_selective else size * (10 + 24 / tp)
    activations = per_layer * layers + 8 * s * b * pp + size * pp
    if virtual_pipeline is not None:
        activations *= 1 + (pp - 1) / (pp * int(virtual_pipeline))
    elif pp > 1 and microbatches is not None:
        activations *= min(1, int(microbatches) / pp)
    if sequence_parallel_and_selective:
        activations = (activations + (size * 4 * (1 + v / h) if pp == 1 else 0)) / tp
        kept = "18 + 4 ffn / h bytes per token, layer and unit of width, and fp32 logits"
        quirks = ["a gated MLP counts like one that is not"]
    else:
        activations = (activations + ((s * b * v / tp + size) * 2 if pp == 1 else 0)) * 1.05
        kept = "34 bytes per token, layer and unit of width whatever the MLP, 16-bit logits, and 5% on top"
        quirks = ["the width of the MLP does not count, the logits in 16 bit and not in fp32"]
    parts = [
        state("weights", 2, held),
        state("fp32 gradients", 4, held),
        state("master weights", 4, held, share),
        state("optimizer", 8, held, share),
        ("activations", activations, None, 1, kept),
    ]
    states = held * (6 + 12 / d if distributed_optimizer else 18)
    printed = {"weight and optimizer": states, "activation": activations, "total": states + activations}
    return estimate(
        f"Megatron-LM{', distributed optimizer' if distributed_optimizer else ''}",
        held,
        parts,
        printed={name: f"{size / MiB:.2f} MB" for name, size in printed.items()},
        unit=("MB", MiB),
        quirks=("it divides by 2^20 and writes MB", "it knows no sharding but the optimizer's", *quirks),
    )
