"""What a stage sends in each step: by the ring's rules for what was issued, and by the sockets' counters."""

from __future__ import annotations

from collections.abc import Sequence

from utils.checks.lab04.memory import WHOLE
from utils.checks.lab04.training import Case, Trained
from utils.checks.ranks import STEP, Seen
from utils.checks.verdict import Mistake
from utils.runtime.recorder import Op

TOLERANCE = 0.01
FRAMING, WORDS = 0.01, 300  # what gloo adds: a share of the bytes, and so many bytes to each message
SMALL = 64  # bytes for a norm, a flag or a count
LIKE_THE_RING = ("reduce_scatter", "all_gather", "all_to_all")  # gloo's others move more than the ring's rule says


def ops_of(seen: Seen, step: int, moment: str = "") -> list[Op]:
    """The operations of a step; of one moment in it ("forward", "backward", "step"), if one is named."""
    start, over = f"{STEP}{step}, {moment}", f"{STEP}{step}, after"
    return [op for label, op in seen.issued if label.startswith(start) and label != over and op.kind != "barrier"]


def judge_kinds(seen: Sequence[Seen], case: Case, remedy: str) -> None:
    """Raise Mistake if whole gradients are all-reduced, or weights broadcast, where slices would do."""
    for each in seen:
        for step in range(len(case.micro_batches)):
            for op in ops_of(each, step):
                if op.kind == "all_reduce" and op.bytes > SMALL:
                    line = f" (line {op.line.line}: `{op.line.text}`)" if op.line else ""
                    raise Mistake(
                        f"the numbers are right, but the gradients are all-reduced{line}, and each rank then uses its "
                        f"slice alone: that sends twice what a reduce-scatter does. {remedy}"
                    )


def judge_traffic(seen: Sequence[Seen], case: Case, passes: Sequence[int], text: str) -> None:
    """Raise Mistake if a rank sends more in a step than so many times (N - 1)/N of all weights.

    passes: by step, how often the bytes of all weights go around.
    """
    n = len(seen)
    for rank, each in enumerate(seen):
        trained: Trained = each.value
        for step, times in enumerate(passes):
            law = times * (n - 1) / n * WHOLE
            ops = ops_of(each, step)
            issued = sum(op.ring_bytes for op in ops)
            if issued > law * (1 + TOLERANCE) + SMALL:
                k = case.micro_batches[step]
                of = f" of {k} micro-batches" if k > 1 else ""
                raise Mistake(
                    f"the numbers are right, but in a step{of} rank {rank} of {n} sends {issued / WHOLE:.2f} S, by the "
                    f"ring's rules, where {text} {law / WHOLE:.2f} S (S: the bytes of all weights in bf16)."
                    f"{_why(ops, law)}"
                )
            wire = trained.wire[step]
            counted = wire and wire.sent and all(op.kind in LIKE_THE_RING for op in ops)
            if counted and wire.sent > law * (1 + FRAMING) + WORDS * (n - 1) * len(ops) + SMALL:
                raise Mistake(
                    f"the numbers are right, but rank {rank}'s sockets sent {wire.sent / WHOLE:.1f} S in a step where "
                    f"{text} {law / WHOLE:.2f} S."
                )


def judge_too_little(seen: Sequence[Seen], passes: Sequence[float], text: str) -> None:
    """Raise Mistake if the ranks together send less: then something whole is kept where no count of tensors looks.

    passes: by step, how often the bytes of all weights go around at least.
    """
    n = len(seen)
    for step, times in enumerate(passes):
        issued = sum(op.ring_bytes for each in seen for op in ops_of(each, step)) / n
        least = times * (n - 1) / n * WHOLE
        if issued < least * (1 - TOLERANCE) - SMALL:
            raise Mistake(
                f"the numbers are right, but in a step the ranks send {issued / WHOLE:.2f} S each, where {text} at "
                f"least {least / WHOLE:.2f} S: whole weights or gradients are kept on the way. Which name holds them?"
            )


def _why(ops: Sequence[Op], law: float) -> str:
    by_type = sorted({op.dtype for op in ops if op.dtype and op.bytes > SMALL})
    if "float32" in by_type:
        return " Some are sent in fp32: gradients and weights travel in their own type, bf16."
    kinds = {}
    for op in ops:
        kinds[op.kind] = kinds.get(op.kind, 0.0) + op.ring_bytes
    most = max(kinds, key=kinds.get)
    return f" Of these {kinds[most] / WHOLE:.2f} S are {most}."
