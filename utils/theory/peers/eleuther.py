"""EleutherAI's calculator of a transformer's training memory.

Source: EleutherAI/cookbook, calc/calc_transformer_mem.py (069ae2e).
"""

from __future__ import annotations

from utils.theory.arguments import check_divisor
from utils.theory.explain import Estimate, estimate
from utils.theory.peers.arguments import amount, count, flags, group, state
from utils.theory.peers.printed import by_thousands, gib
from utils.theory.units import GiB, shown

_STATES = {
    "Per-GPU Activation Memory": ("activations",),
    "Per-GPU Model Memory": ("weights",),
    "Per-GPU Gradient Memory": ("fp32 gradients", "16-bit gradients"),
    "Per-GPU Optimizer Memory": ("master weights", "optimizer"),
    "Per-GPU Communication Memory": ("buckets", "live parameters"),
    "Per-GPU Miscellaneous Memory": ("miscellaneous",),
}
_PRINTS = {
    **_STATES,
    "Per-GPU Memory Required for Training": tuple(name for names in _STATES.values() for name in names),
}


def eleuther(
    hidden: int = 6144,
    layers: int = 44,
    heads: int = 64,
    vocabulary: int = 51200,
    sequence: int = 2048,
    micro_batch: int = 1,
    num_gpus: int = 1,
    zero_stage: int = 1,
    checkpoint_activations: bool = False,
    ffn_expansion: float = 4.0,
    mlp_linears: int = 2,
    kv_ratio: float = 1.0,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    partition_activations: bool = False,
    mixed_precision: bool = True,
    low_bytes: int = 2,
    high_bytes: int = 4,
    gradient_bytes: float = 4,
    bucket_elements: float = 5e8,
    live_elements: float = 1e9,
    misc_gib: float = 0,
) -> Estimate:
    """EleutherAI's calc_transformer_mem.py for training a dense model: states, activations and communication buffers.

    mlp_linears: 3 for a gated MLP. kv_ratio: heads of keys over heads of queries. The others as its command line has
    them; its settings for inference and for mixtures of experts are left out.
    """
    whole = {"hidden": hidden, "layers": layers, "heads": heads, "vocabulary": vocabulary, "sequence": sequence}
    whole |= {"micro_batch": micro_batch, "mlp_linears": mlp_linears}
    h, layers, heads, vocabulary, s, b, mlp_linears = (count(name, v) for name, v in whole.items())
    ranks = {"num_gpus": num_gpus, "tensor_parallel": tensor_parallel, "pipeline_parallel": pipeline_parallel}
    n, tp, pp = (group(name, value) for name, value in ranks.items())
    if num_gpus > 1 or tp * pp == 1:  # 1 is what it takes if it is not told, whatever the other two
        check_divisor("tensor_parallel times pipeline_parallel", tp * pp, n, "num_gpus", "they share the GPUs")
    flags(
        checkpoint_activations=checkpoint_activations,
        partition_activations=partition_activations,
        mixed_precision=mixed_precision,
    )
    low_bytes, high_bytes = amount("low_bytes", low_bytes), amount("high_bytes", high_bytes)
    gradient_bytes = amount("gradient_bytes", gradient_bytes)
    if count("zero_stage", zero_stage, least=0) > 3:
        raise ValueError(f"zero_stage is {shown(zero_stage)}; ZeRO has stages 0 (none) to 3: give one of 0, 1, 2, 3")
    ffn_expansion, kv_ratio = amount("ffn_expansion", ffn_expansion), amount("kv_ratio", kv_ratio)
    bucket, live = amount("bucket_elements", bucket_elements, 0), amount("live_elements", live_elements, 0)

    attention = int(2 * (1 + kv_ratio) * layers * h * h)
    mlp = mlp_linears * layers * h * ffn_expansion * h
    parameters = 2 * vocabulary * h + h * s + 8 * h * layers + 2 * h + attention + mlp
    each = low_bytes if mixed_precision else high_bytes
    cut = n if zero_stage >= 2 else 1
    linear = 16 * low_bytes + 2
    scores = 0 if checkpoint_activations else (2 * low_bytes + 1) * heads * s / h
    activations = s * b * h * layers * (linear + scores) / (tp if partition_activations else 1)
    kept = f"{linear} bytes per token, layer and unit of width"
    kept += "" if checkpoint_activations else ", and the attention scores, also with FlashAttention"
    is_split, has_buffers = tp * pp > 1, zero_stage > 0 and n > 1
    parts = [
        state("weights", each, parameters, tp * pp * (n if zero_stage == 3 else 1)),
        state("fp32 gradients" if gradient_bytes >= 4 else "16-bit gradients", gradient_bytes, parameters, cut),
        state("master weights", 4, parameters, n if zero_stage else 1),
        state("optimizer", 8, parameters, n if zero_stage else 1),
        ("buckets", bucket * each if has_buffers else 0, None, 1, "ZeRO's all-gather bucket"),
        (
            "live parameters",
            live * each if has_buffers and zero_stage == 3 else 0,
            None,
            1,
            f"{live:,.0f} parameters that stay gathered",
        ),
        ("activations", activations, None, 1, kept),
        ("miscellaneous", amount("misc_gib", misc_gib, least=0) * GiB),
    ]
    sizes = {name: sum(p[1] for p in parts if p[0] in names) for name, names in _PRINTS.items()}
    printed = {name: f"{gib(size)} GiB" for name, size in sizes.items()}
    printed["Number of Parameters"] = by_thousands(parameters)
    quirks = {
        "it counts input and output embedding apart, also where they are tied, and positions always": True,
        "its checkpointing leaves out the attention scores alone": checkpoint_activations,
        "it divides by all GPUs, not by the data-parallel ones": is_split and zero_stage > 0,
        "its weights are divided by tensor and pipeline ranks and once more by all GPUs": is_split and zero_stage == 3,
        "its gradients, at stage 0 the optimizer too, are not divided by tensor and pipeline ranks": is_split
        and zero_stage < 2,
    }
    who = f"EleutherAI ZeRO-{zero_stage}{', checkpointing' if checkpoint_activations else ''}"
    return estimate(who, parameters, parts, printed=printed, unit=("GiB", GiB), quirks=_those(quirks))


def _those(quirks: dict[str, bool]) -> tuple[str, ...]:
    return tuple(quirk for quirk, applies in quirks.items() if applies)
