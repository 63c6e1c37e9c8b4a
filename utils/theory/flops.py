"""Floating-point operations of a training step, and the share of a GPU's peak that they make.

"MFU" is not one formula. Two conventions stand here side by side, and each result says which it is:

- **6 N + 12 L h s per token** (`flops_per_token`): 2 operations for each of N parameters forward, 4 backward, and the
  attention scores. Chowdhery et al., PaLM, arXiv:2204.02311, appendix B; mosaicml/llm-foundry counts so, over all N.
  pytorch/torchtitan leaves the embedding out since the end of 2024. Some halve the attention because it is causal.
- **72 B L s h^2 (1 + s / 6h + v / 12hL) per step** (`transformer_flops`): Korthikanti et al., "Reducing Activation
  Recomputation in Large Transformer Models", arXiv:2205.05198, appendix A, equations 7 and 8: GPT with an MLP of 4 h.

Model FLOPs (MFU) are what the mathematics needs; hardware FLOPs (HFU) count what is computed again as well. Peaks are
dense 16-bit figures: the 1979 TFLOPS of an H100 are with 2:4 sparsity.
"""

from __future__ import annotations

from utils.theory.activations import RECOMPUTATIONS
from utils.theory.arguments import check_amount, check_choice, check_ranks, check_whole, check_yes_or_no
from utils.theory.units import plain, shown

#: Dense bf16 operations per second of one device (V100: fp16). NVIDIA data sheets; TPU: jax-ml/scaling-book.
PEAK_FLOPS: dict[str, float] = {
    "V100": 125e12,
    "A100": 312e12,
    "H100": 989.4e12,  # SXM; half of the sparse figure
    "H200": 989.4e12,
    "B200": 2250e12,
    "TPU v5p": 459e12,
}


def flops_per_token(
    parameters: float,
    layers: int,
    hidden: int,
    sequence: int,
    embedding_parameters: float = 0,
    causal: bool = False,
) -> float:
    """Model FLOPs of one token, forward and backward: 6 (N - embedding) + 12 L h s.

    Args:
        parameters: N, all of them.
        layers: L. hidden: h; heads times the size of a head where that differs. sequence: s, tokens.
        embedding_parameters: what to leave out of N; 0 is llm-foundry's convention.
        causal: True counts half of the attention scores, those before the token.
    """
    check_amount("parameters", parameters, "a number of parameters", "such as 7.5e9")
    for name, value in (("layers", layers), ("hidden", hidden), ("sequence", sequence)):
        check_whole(name, value, "a size of the model")
    check_amount("embedding_parameters", embedding_parameters, "a part of the model", "such as 131e6", least=0)
    check_yes_or_no("causal", causal)
    if embedding_parameters > parameters:
        raise ValueError(
            f"embedding_parameters is {shown(embedding_parameters)}; it is a part of the model's {shown(parameters)} "
            "parameters: give at most as many"
        )
    attention = 12 * int(layers) * int(hidden) * int(sequence)
    matrices = 6 * (plain(parameters) - plain(embedding_parameters))
    return float(matrices) + attention / (2 if causal else 1)


def transformer_flops(
    layers: int, hidden: int, vocabulary: int, sequence: int, sequences: int, recomputation: str = "none"
) -> float:
    """FLOPs of one step of a GPT over a batch of `sequences` (B).

    recomputation: "none" gives the model FLOPs (equation 7); "selective" the hardware FLOPs when attention is computed
    again (equation 8: s / 3h in place of s / 6h, which is three times what attention's forward takes, not once; the
    published HFU needs it so); "full" those when all layers are: 96 B L s h^2 (1 + s / 6h + v / 16hL), equation 3 of
    Narayanan et al., SC21, arXiv:2104.04473.
    """
    given = {"layers": layers, "hidden": hidden, "vocabulary": vocabulary, "sequence": sequence, "sequences": sequences}
    for name, value in given.items():
        check_whole(name, value, "a size of the model or the batch")
    check_choice("recomputation", recomputation, RECOMPUTATIONS)
    layers, h, v, s, b = (int(value) for value in given.values())
    matrices, scores, logits = 24 * b * layers * s * h * h, 4 * b * layers * s * s * h, 2 * b * s * h * v  # forward
    again = {"none": 0, "selective": 3 * scores, "full": matrices + scores}[recomputation]
    return float(3 * (matrices + scores + logits) + again)


def utilization(flops: float, seconds: float, gpus: int, peak_flops: float) -> float:
    """Share of the peak: MFU of model FLOPs, HFU of hardware FLOPs. Above 1 the figures given do not belong together.

    flops: of all GPUs in `seconds`. peak_flops: of one, per second; see `PEAK_FLOPS`.
    """
    check_amount("flops", flops, "a number of operations", "such as 1e15")
    check_amount("seconds", seconds, "a duration", "such as 1.5")
    check_ranks("gpus", gpus, "a number of GPUs")
    check_amount("peak_flops", peak_flops, "operations per second of one GPU", "such as PEAK_FLOPS['A100']")
    return float(flops) / float(seconds) / int(gpus) / float(peak_flops)


def mfu(flops_per_token: float, tokens_per_second: float, gpus: int, peak_flops: float) -> float:
    """Model FLOPs utilization from throughput: model FLOPs of a token (`flops_per_token`) times tokens per second."""
    check_amount("flops_per_token", flops_per_token, "operations for one token", "such as 6 * 7e9")
    check_amount("tokens_per_second", tokens_per_second, "the throughput of all GPUs", "such as 40e3")
    per_second = float(flops_per_token) * float(tokens_per_second)
    check_amount("flops_per_token times tokens_per_second", per_second, "operations per second", "such as 1e15")
    return utilization(per_second, 1, gpus, peak_flops)


def hfu(
    flops_per_token: float, tokens_per_second: float, gpus: int, peak_flops: float, recomputation: str = "full"
) -> float:
    """Hardware FLOPs utilization as llm-foundry counts it: 4/3 of MFU with full recomputation, as forward runs twice.

    recomputation: "none" or "full". This counts the output layer as computed again too, which it is not;
    `transformer_flops` does not.
    """
    check_choice("recomputation", recomputation, ("none", "full"))
    return mfu(flops_per_token, tokens_per_second, gpus, peak_flops) * (4 / 3 if recomputation == "full" else 1)


def critical_tokens_per_chip(peak_flops: float, bandwidth: float) -> float:
    """Tokens of a batch per chip above which backward outlasts the gradients' reduction: C / W.

    Backward computes 4 P operations a token, so 4 P t / C seconds. An all-reduce of 2 P bytes (bf16) passes twice
    that over the links, 4 P / W; FSDP's gathers and reduce-scatter take no longer than the compute beside them under
    the same condition. W: bytes per second *both ways together*, since a ring may run in both directions at once.
    Source: jax-ml/scaling-book, training.md. (N - 1) / N and latency are left out.
    """
    check_amount("peak_flops", peak_flops, "operations per second of one chip", "such as 459e12")
    check_amount("bandwidth", bandwidth, "bytes per second of one chip, both ways together", "such as 180e9")
    return float(peak_flops) / float(bandwidth)
