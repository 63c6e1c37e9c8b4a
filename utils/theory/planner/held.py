"""Memory of a GPU for any number of tokens, from two evaluations of `breakdown.training_memory`.

At each moment of a step what a GPU holds grows in proportion to the tokens of its micro-batch, on top of what does not
depend on them; the peak is the largest of these lines. So two evaluations give all micro-batches and all sequences of a
model under one strategy, exactly, and a thousand plans need only a few hundred of them.
"""

from __future__ import annotations

from functools import lru_cache

from utils.theory.architecture import Architecture
from utils.theory.breakdown import training_memory

#: Bytes per parameter: PyTorch's DDP and FSDP keep fp32 weights and compute in 16 bit, DeepSpeed's ZeRO 16-bit weights
#: beside fp32 master weights. 16 bytes a parameter all the same.
RECIPES = {"ddp": "fsdp2", "fsdp": "fsdp2", "hsdp": "fsdp2", "zero1": "zero-paper", "zero2": "zero-paper"}
_AT = (16, 48)  # tokens; within every model's learned positions


@lru_cache(maxsize=8192)
def lines(model: Architecture, strategy: str, shards: int, again: str) -> tuple[tuple[float, float], ...]:
    """(bytes without tokens, bytes of each token) at each moment of a step. shards: GPUs that share the states.

    hsdp holds what fsdp does in one of its groups.
    """
    kind = "fsdp" if strategy == "hsdp" else strategy
    low, high = (training_memory(model, shards, kind, tokens, 1, again, recipe=RECIPES[kind]).moments for tokens in _AT)
    found: list[tuple[float, float]] = []
    for first, second in zip(low, high, strict=True):
        each = (second.total - first.total) / (_AT[1] - _AT[0])
        found.append((first.total - _AT[0] * each, each))
    # Of two lines the one that is lower everywhere is never the peak.
    found.sort(reverse=True)
    kept: list[tuple[float, float]] = []
    for line in found:
        if not kept or line[1] > kept[-1][1]:
            kept.append(line)
    return tuple(kept)


def held(model: Architecture, strategy: str, shards: int, again: str, tokens: int) -> float:
    """Bytes of a GPU at the peak, with so many tokens in a micro-batch."""
    return max(fixed + each * tokens for fixed, each in lines(model, strategy, shards, again))


def most_tokens(model: Architecture, strategy: str, shards: int, again: str, budget: float) -> int:
    """The largest micro-batch that fits, in tokens; 0 if not even one does."""
    room = [(budget - fixed) / each if each else (0.0 if fixed > budget else float("inf"))
            for fixed, each in lines(model, strategy, shards, again)]  # fmt: skip
    return max(0, int(min(min(room), 2.0**40)))
