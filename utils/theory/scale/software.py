"""What runs the step: which operations are fused, which attention kernel, what is overlapped. Facts about programs.

None of these is fitted to a throughput. Bytes of element-wise operations follow from what each of them reads and writes
(`traffic`); shares of attention kernels are their authors' own measurements:

- FlashAttention: 25 to 40% of an A100's peak (Dao, "FlashAttention-2", arXiv:2307.08691, section 1); FlashAttention-2
  twice that: 50 to 73% forward, up to 63% backward, on an A100 with long sequences; 35% of an H100's peak
  (Shah et al., "FlashAttention-3", arXiv:2407.08608, abstract), where it measures 298 to 335 TFLOPS forward with a causal
  mask, cuDNN 484 to 539 (Figure 5, 2k to 16k tokens, heads of 128).
- Heads of 64 run at 0.88 of what heads of 128 do (the same figure: 262 against 298 TFLOPS at 2k tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.arguments import check_choice

#: Share of the 16-bit peak that a causal attention kernel reaches, forward and backward together, by generation of GPU.
ATTENTION: dict[str, dict[str, float]] = {
    "flash-1": {"V100": 0.3, "A100": 0.30, "H100": 0.175, "H200": 0.175, "B200": 0.175},
    "flash-2": {"V100": 0.3, "A100": 0.55, "H100": 0.33, "H200": 0.33, "B200": 0.33},
    "cudnn": {"V100": 0.3, "A100": 0.55, "H100": 0.50, "H200": 0.50, "B200": 0.50},
}
#: Of the 16-bit peak, by batched matrices of s x 128: about what FlashAttention-2 reaches with the same tiles.
STANDARD_SHARE = 0.55
NARROW_HEADS = 0.88  # heads of 64 and less against heads of 128
FUSED, EAGER = "fused", "eager"


@dataclass(frozen=True)
class Software:
    """One way to run a step.

    operations: "fused" or "eager", of norms, activations, rotary positions and the loss. attention: a kernel in
    `ATTENTION`, or "standard", which writes the s² scores to memory. stops_early: whether recomputation leaves out a
    layer's last matrix, whose result nobody needs again. reduced_bytes: of a gradient on the wire.
    overlaps_data: data-parallel collectives beside compute; gathers_ahead: zero1 and zero2 gather new weights beside the
    next forward pass, not after the optimizer. overlaps_tensor: the share of tensor-parallel collectives that hides.
    fused_optimizer: one pass over the states, or one for each of Adam's operations.
    """

    name: str
    operations: str
    attention: str
    stops_early: bool
    reduced_bytes: int
    overlaps_data: bool
    overlaps_tensor: float
    fused_optimizer: bool
    source: str
    gathers_ahead: bool = False

    def __post_init__(self) -> None:
        check_choice("operations", self.operations, (FUSED, EAGER))
        check_choice("attention", self.attention, (*ATTENTION, "standard"))


SOFTWARE: dict[str, Software] = {
    software.name: software
    for software in (
        Software(
            "llm-foundry", EAGER, "flash-1", True, 2, True, 0.0, False,
            "mosaicml/llm-foundry, 2023: FSDP in 16 bit (PURE), Triton's FlashAttention, checkpoints not re-entrant",
            gathers_ahead=True,
        ),
        Software(
            "FSDP, eager", EAGER, "flash-2", True, 4, True, 0.0, True,
            "PyTorch FSDP with scaled_dot_product_attention, gradients reduced in fp32, fused AdamW",
        ),
        Software(
            "FSDP, compiled", FUSED, "flash-2", True, 4, True, 0.0, True,
            "the same with torch.compile on each layer",
        ),
        Software(
            "FSDP, async TP", FUSED, "flash-2", True, 4, True, 0.75, True,
            "the same; each of a layer's four collectives in pieces beside its matrix, of four pieces one is exposed",
        ),
        Software(
            "DeepSpeed 2021", EAGER, "standard", False, 2, True, 0.0, True,
            "Rajbhandari et al., ZeRO-Infinity, SC21: gathers and reductions beside compute; fused Adam",
        ),
        Software(
            "Megatron 2021", FUSED, "standard", False, 2, False, 0.0, True,
            "Narayanan et al., SC21, section 4.2: fused bias, GeLU, dropout, scale, mask and softmax; all-reduces exposed",
        ),
        Software(
            "Megatron 2022", FUSED, "standard", False, 2, False, 0.0, True,
            "Korthikanti et al., arXiv:2205.05198: the same with sequence parallelism",
        ),
        Software(
            "NeMo", FUSED, "cudnn", False, 2, True, 0.75, True,
            "NVIDIA NeMo with Transformer Engine: cuDNN attention, tensor-parallel collectives in pieces (userbuffers), "
            "distributed optimizer overlapped",
            gathers_ahead=True,
        ),
        Software(
            "Llama 3", FUSED, "cudnn", False, 4, True, 0.0, True,
            "Llama Team, arXiv:2407.21783, section 3.3: fp32 reductions; FSDP beside compute",
        ),
    )
}  # fmt: skip
#: Taken where nothing else is said: what a fine-tuning job with PyTorch runs today.
DEFAULT_SOFTWARE = "FSDP, compiled"


def named_software(software: str | Software) -> Software:
    """The software itself, or that of `SOFTWARE` with that name."""
    if isinstance(software, Software):
        return software
    check_choice("software", software, SOFTWARE)
    return SOFTWARE[software]


def generation(gpu_name: str) -> str:
    """ "A100" of "A100 80GB"."""
    return gpu_name.split()[0]


def attention_share(software: Software, gpu_name: str, head_dim: int) -> float:
    """Share of the 16-bit peak that its attention kernel reaches on that GPU; an unknown generation is taken as H100."""
    shares = ATTENTION[software.attention]
    share = shares.get(generation(gpu_name), shares["H100"])
    return share * (NARROW_HEADS if head_dim <= 64 else 1)
