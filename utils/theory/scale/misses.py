"""Why the model misses the published runs that it misses by more than a quarter: what is known, and what is guessed."""

from __future__ import annotations

from utils.theory.scale.published import Run

#: Beginning of a run's name -> the cause. "Probably": nothing published proves it.
CAUSES: dict[str, str] = {
    "IBM/Meta Llama 3 arch 405B": "GPUs, micro-batch and checkpointing are not stated",
    "torchtitan asyncTP, Llama3 8B": "unknown; published throughput of FSDP alone is nearer",
    "torchtitan asyncTP, Llama3 70B FSDP 32, TP 8, async TP, compile, s8192, float8": (
        "rowwise fp8 was not faster there than bf16 (625 against 652 tokens/s); why is not stated"
    ),
    "SC21 ZeRO-3 529.6B": "unknown; 174.6B on 768 and 1536 GPUs is predicted a fifth too fast as well",
    "llm-foundry 30b s8192 8x": "probably the allocator: 75 of 80 GB by theory.memory (Zhao et al., section 5.4)",
    "llm-foundry 760m s512 8xA100-80GB": "probably the allocator: 83 GB by theory.memory where there are 80",
    "llm-foundry 70b s2048 64xA100-40GB": "unknown; 128 GPUs with twice the micro-batch were 36% faster each",
    "NeMo LLAMA2-7B": (
        "probably the attention kernel: with FlashAttention 2's rate instead of cuDNN's all errors are below 10%"
    ),
    "torchtitan Table 2, Llama 3.1 8B FSDP 2, CP 4": (
        "probably the attention: ring attention that computes masked blocks too takes twice as long"
    ),
}


def cause(run: Run) -> str:
    """The cause that stands for it, or "" where none does."""
    return next((why for begin, why in CAUSES.items() if run.name.startswith(begin)), "")
