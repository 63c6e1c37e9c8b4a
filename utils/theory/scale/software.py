"""What runs the step: which operations are fused, which attention kernel, what is overlapped. Facts about programs.

None of these is fitted to a throughput. Bytes of element-wise operations follow from what each of them reads and writes
(`operations`); shares of attention kernels are their authors' own measurements, but for a V100's, which is a guess:

- FlashAttention: 25 to 40% of an A100's peak (Dao, "FlashAttention-2", arXiv:2307.08691, section 1); FlashAttention-2
  twice that: 50 to 73% forward, up to 63% backward, on an A100 with long sequences; 35% of an H100's peak
  (Shah et al., "FlashAttention-3", arXiv:2407.08608, abstract), where it measures 298 to 335 TFLOPS forward with a
  causal mask, cuDNN 484 to 539 (Figure 5, 2k to 16k tokens, heads of 128). FlashAttention 1 on an H100: half of 2.
- Heads of 64 run at 0.88 of what heads of 128 do (the same figure: 262 against 298 TFLOPS at 2k tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_choice
from utils.theory.units import GB, MB

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
LAYER = "layer"


@dataclass(frozen=True)
class Software:
    """One way to run a step.

    operations: "fused" or "eager", of norms, activations, rotary positions and the loss. attention: a kernel in
    `ATTENTION`, or "standard", which writes the s² scores to memory. stops_early: whether recomputation leaves out a
    layer's last matrix, whose result nobody needs again. fused_optimizer: one pass over the states, or one for each of
    Adam's operations. fused_loss: whether the loss is one kernel where operations are eager. quantized_bytes: of fp8
    jobs, moved for each element of a matrix's input or output to scale and cast it.

    gathers: beside which phases weights are gathered, of "forward" and "backward"; beside the others they are waited
    for. gathers_again: whether they are gathered once more for recomputation. each_tensor: seconds that the program
    takes to prepare a gather, where it gathers and reduces every tensor by itself; None where it does a layer at once.
    reduces: whether gradients are reduced beside the backward pass. reduced_bytes: of a gradient on the wire. bucket:
    bytes of gradients that DDP and ZeRO-1 and 2 reduce at once; LAYER: those of a layer; None: all. replicas_once:
    whether hsdp's replicas exchange gradients once a step, and not for each micro-batch. overlaps_tensor: the share of
    tensor-parallel collectives that hides. overlaps_pipeline: whether what interleaved stages send hides.
    """

    name: str
    operations: str
    attention: str
    source: str
    stops_early: bool = False
    reduced_bytes: int = 2
    gathers: tuple[str, ...] = ("forward", "backward")
    each_tensor: float | None = None
    gathers_again: bool = False
    bucket: float | str | None = 25 * 2**20
    reduces: bool = True
    overlaps_tensor: float = 0.0
    quantized_bytes: int = 5
    fused_optimizer: bool = True
    fused_loss: bool = False
    replicas_once: bool = False
    overlaps_pipeline: bool = False

    def __post_init__(self) -> None:
        check_choice("operations", self.operations, (FUSED, EAGER))
        check_choice("attention", self.attention, (*ATTENTION, "standard"))
        if self.bucket is not None and self.bucket != LAYER:
            check_amount("a software's bucket", self.bucket, "bytes of gradients", "such as 25 * 2**20")
        if self.each_tensor is not None:
            check_amount("a software's each_tensor", self.each_tensor, "a time in seconds", "such as 380e-6", least=0)


_FSDP = {"stops_early": True, "reduced_bytes": 4}
_TORCH = "PyTorch FSDP with scaled_dot_product_attention and checkpoints not re-entrant, gradients reduced in fp32"
_IBM = "foundation-model-stack/fms-fsdp, fms_fsdp/policies/mixed_precision.py: gathered and reduced in bf16"
_TENSOR_PIECES = 0.75  # four pieces: the first one's collective, or the last one's, has no matrix beside it

SOFTWARE: dict[str, Software] = {
    software.name: software
    for software in (
        Software(
            "llm-foundry", EAGER, "flash-1",
            "mosaicml/llm-foundry, 2023: FSDP in 16 bit, FlashAttention 1 in Triton, checkpoints not re-entrant; "
            "Composer's backward_prefetch is BACKWARD_POST unless set: gathers of the backward pass wait for "
            "gradients; its loss_fn is fused_crossentropy unless set, and benchmarking/submit_benchmarks.py does not",
            stops_early=True, gathers=("forward",), fused_optimizer=False, fused_loss=True,
        ),
        Software("FSDP, eager", EAGER, "flash-2", _TORCH, **_FSDP),
        Software("FSDP, compiled", FUSED, "flash-2", f"{_TORCH}; torch.compile on each layer", **_FSDP),
        Software(
            "FSDP, compiled, rowwise fp8", FUSED, "flash-2",
            f"{_TORCH}; torchao's rowwise recipe scales each tensor once for its rows and once for its columns",
            quantized_bytes=10, **_FSDP,
        ),
        Software(
            "FSDP, async TP", FUSED, "flash-2", f"{_TORCH}; a layer's collectives in pieces beside its matrices",
            overlaps_tensor=_TENSOR_PIECES, **_FSDP,
        ),
        Software(
            "FSDP, async TP, rowwise fp8", FUSED, "flash-2", "both of the above",
            overlaps_tensor=_TENSOR_PIECES, quantized_bytes=10, **_FSDP,
        ),
        Software(
            "FSDP2, bf16", FUSED, "flash-2",
            "PyTorch FSDP2 with torch.compile; gradients reduced in bf16, as they are without a reduce_dtype; "
            "hsdp with set_requires_all_reduce(False) in all micro-batches but the last; DDP with its bf16 hook",
            stops_early=True, replicas_once=True,
        ),
        Software("fms-fsdp, eager", EAGER, "flash-2", _IBM, stops_early=True),
        Software("fms-fsdp, compiled", FUSED, "flash-2", f"{_IBM}; torch.compile", stops_early=True),
        Software(
            "DeepSpeed 2021", EAGER, "standard",
            "DeepSpeed 0.3.16: each tensor is gathered and reduced by itself (runtime/zero/partition_parameters.py), "
            "gathered after 130 + 250 microseconds of preparation (issue 1069) and never beside compute (pull request "
            "1188), and once more for recomputation (ZeRO-Infinity, arXiv:2104.07857, section 4.1)",
            gathers=(), each_tensor=380e-6, gathers_again=True,
        ),
        Software(
            "Megatron 2021", FUSED, "standard",
            "Narayanan et al., SC21, section 4.2: fused bias, GeLU, dropout, scale, mask and softmax; all-reduces are "
            "exposed; Megatron's own DDP reduces all gradients at once, behind the backward pass",
            reduces=False, bucket=None,
        ),
        Software(
            "Megatron 2021, PyTorch DDP", FUSED, "standard",
            "the same with --DDP-impl torch, as NVIDIA/Megatron-LM's examples/sc21/run_table_1.sh has it for models "
            "without pipeline",
        ),
        Software(
            "Megatron 2022", FUSED, "standard",
            "Korthikanti et al., arXiv:2205.05198: the same with sequence parallelism",
            reduces=False, bucket=None,
        ),
        Software(
            "NeMo", FUSED, "cudnn",
            "NVIDIA NeMo with Transformer Engine: cuDNN attention, tensor-parallel collectives in pieces, "
            "distributed optimizer overlapped in buckets of 4e7 elements, casts to fp8 with the scale of earlier "
            "steps; interleaved stages send beside compute (overlap_p2p_comm)",
            overlaps_tensor=_TENSOR_PIECES, quantized_bytes=3, bucket=80 * MB, overlaps_pipeline=True,
        ),
        Software(
            "Llama 3", FUSED, "cudnn",
            "Llama Team, arXiv:2407.21783, section 3.3: gradients reduced in fp32; FSDP, so a layer at once; stages "
            "send asynchronously",
            reduced_bytes=4, bucket=LAYER, overlaps_pipeline=True,
        ),
        Software(
            "ZeRO, compiled", FUSED, "flash-2",
            "DeepSpeed's ZeRO-1 and ZeRO-2: gradients reduced beside the backward pass; new weights are gathered after "
            "the optimizer, beside nothing (deepspeedai/DeepSpeed issue 6876); buckets of 5e8 elements",
            stops_early=True, gathers=(), bucket=1 * GB,
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
    """Share of the 16-bit peak that its attention kernel reaches on that GPU; unknown ones are taken as H100."""
    shares = ATTENTION[software.attention]
    share = shares.get(generation(gpu_name), shares["H100"])
    return share * (NARROW_HEADS if head_dim <= 64 else 1)
