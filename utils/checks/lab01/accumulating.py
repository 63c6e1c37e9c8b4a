"""01.accumulate and 01.ddp_accumulate: k micro-batches, one communication, one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

from utils.checks.lab01.cases import on_case
from utils.checks.lab01.gradients import Gradients, Suspect, added, compare, scaled
from utils.checks.lab01.traps import FROZEN, PLAIN, SIZES, TIED, UNUSED, Batch, Trap, shares
from utils.checks.lab01.twin import Taken, Twin, Watch, make_optimizer, one_step_each, same_weights
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake

CALLS = (1, 3, 4)  # micro-batches in each call of the answer; 3 on 4 ranks, so that no two factors coincide

Wrap = Callable[[nn.Module], nn.Module]


def verify(answer: Any) -> str:
    """With gradients that the answer itself averages."""
    _verify(answer, _as_it_is, (TIED, FROZEN, UNUSED, SIZES))
    return (
        "the step's gradients are the mean over all micro-batches and ranks, within 1e-5 of a single process's, for 1, "
        "3 and 4 micro-batches on 2 and 4 ranks, and 4 micro-batches cost the bytes of one; also with tied weights, "
        "frozen parameters, an unused layer."
    )


def verify_ddp(answer: Any) -> str:
    """With a model that torch's DistributedDataParallel has wrapped."""
    _verify(answer, _in_ddp, (TIED, FROZEN, SIZES))
    return (
        "with torch's DDP the step's gradients are the mean over all micro-batches and ranks, within 1e-5 of a single "
        "process's, for 1, 3 and 4 micro-batches on 2 and 4 ranks, and DDP all-reduces once a step; also with tied "
        "weights and frozen parameters."
    )


def _verify(answer: Any, wrap: Wrap, traps: Sequence[Trap]) -> None:
    seen = run_cases(answer, {PLAIN.name: partial(observe, PLAIN, wrap)}, 4)[PLAIN.name]
    with on_case(PLAIN.name, seen, first=True):
        judge(PLAIN, seen)
    cases = run_cases(answer, {trap.name: partial(observe, trap, wrap) for trap in traps}, 2)
    for trap in traps:
        with on_case(trap.name, cases[trap.name]):
            judge(trap, cases[trap.name])


def _as_it_is(model: nn.Module) -> nn.Module:
    return model


def _in_ddp(model: nn.Module) -> nn.Module:
    return DistributedDataParallel(model)


def micro_batches(ranks: int, call: int) -> list[list[Batch]]:
    """By rank, this call's micro-batches."""
    by_place = [shares(ranks, seed=10 * call + place) for place in range(CALLS[call])]
    return [[batches[rank] for batches in by_place] for rank in range(ranks)]


def observe(trap: Trap, wrap: Wrap, answer: Any, mark: Mark) -> Taken:
    """In a rank: three steps, of 1, 3 and 4 micro-batches."""
    model = trap.build()
    watch = Watch(model, make_optimizer(model), mark)
    wrapped = wrap(model)
    for call in range(len(CALLS)):
        mine = micro_batches(dist.get_world_size(), call)[dist.get_rank()]
        watch.call(answer, wrapped, watch.optimizer, mse_loss, mine)
    return watch.taken()


def judge(trap: Trap, seen: Sequence[Seen]) -> None:
    """In the notebook: gradients at each step beside the twin's, then what each call communicated."""
    ranks, twin = len(seen), Twin(trap)
    taken: list[Taken] = [each.value for each in seen]
    before: Gradients | None = None
    for call, k in enumerate(CALLS):
        batches = micro_batches(ranks, call)
        one_step_each(taken, call)
        parts = [[twin.gradients(batch) for batch in mine] for mine in batches]
        local = [scaled(added(mine), 1 / k) for mine in parts]
        whole = scaled(added(local), 1 / ranks)
        compare(
            [each.steps[call][0] for each in taken],
            whole,
            local,
            _factors(ranks, k),
            _suspects(parts, whole, before, k),
            _untouched(seen[0], call, k),
        )
        before = whole
        twin.step([batch for mine in batches for batch in mine])
        same_weights(taken, call, twin)
    _judge_bytes(seen)


def _factors(ranks: int, k: int) -> dict[float, str]:
    over_ranks = {
        ranks: "the gradients are summed over the ranks, not averaged",
        1 / ranks: "the mean over the ranks is divided by the number of ranks once more",
    }
    if k == 1:
        return over_ranks
    return {
        k: "the micro-batches are summed, not averaged: divide each loss by their number",
        1 / k: "the gradients are divided by the number of micro-batches twice",
        ranks * k: "the gradients are summed over ranks and micro-batches, not averaged",
    } | over_ranks


def _suspects(parts: list[list[Gradients]], whole: Gradients, before: Gradients | None, k: int) -> list[Suspect]:
    """`parts` by rank and micro-batch."""
    ranks, suspects = len(parts), []
    if k > 1:
        for divisor, also in ((1, ""), (k, f", and are divided by {k}")):
            last = scaled(added(mine[-1] for mine in parts), 1 / ranks / divisor)
            suspects.append(
                Suspect(
                    [last] * ranks,
                    f"only the last micro-batch's gradients are left{also}: `zero_grad` belongs before the loop.",
                )
            )
            early = scaled(added(part for mine in parts for part in mine[:-1]), 1 / ranks / divisor)
            late = [added([early, scaled(mine[-1], 1 / divisor)]) for mine in parts]
            suspects.append(
                Suspect(late, "the last micro-batch is not averaged: its gradients are added after the communication.")
            )
        suspects.append(
            Suspect([added(mine) for mine in parts], "nothing is averaged, neither over ranks nor over micro-batches.")
        )
    if before is not None:
        suspects.append(
            Suspect(
                [added([before, whole])] * ranks,
                "from the second step on, the gradients of the step before are still in the sum: `zero_grad` is "
                "missing.",
            )
        )
    return suspects


def _untouched(seen: Seen, call: int, k: int) -> str:
    issued = sum(op.bytes for op in seen.after(f"call {call}"))
    late = sum(op.bytes for op in seen.after(f"step {call}"))
    micro = f"{k} micro-batch{'es' if k > 1 else ''}"
    if late:
        return f"the ranks communicate after the step: at `optimizer.step()` each has its own gradients of {micro}."
    if issued:
        return f"the ranks communicate {issued} B, but at `optimizer.step()` each has its own gradients of {micro}."
    return (
        f"the ranks never communicate: with {micro} each steps with its own gradients. Is synchronising switched on "
        "too late, after the last micro-batch's forward and backward?"
    )


def _judge_bytes(seen: Sequence[Seen]) -> None:
    """k micro-batches must cost what one costs, in the same answer: no style of communication is preferred."""
    sent = [_sent(seen[0], call) for call in range(len(CALLS))]
    for k, bytes_sent in zip(CALLS[1:], sent[1:], strict=True):
        if bytes_sent > 1.5 * sent[0]:
            raise Mistake(
                f"the gradients are right, but {k} micro-batches cost {bytes_sent / sent[0]:.1f} times the bytes of "
                "one: communicate once a step, not once a micro-batch."
            )


def _sent(seen: Seen, call: int) -> float:
    return sum(op.ring_bytes for op in (*seen.after(f"call {call}"), *seen.after(f"step {call}")))
