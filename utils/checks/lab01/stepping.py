"""01.train_step: one step of plain data parallelism, and the mean loss over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch.distributed as dist

from utils.checks.lab01.cases import on_case, reduced_once
from utils.checks.lab01.gradients import Suspect, added, compare, mean_factors, scaled
from utils.checks.lab01.traps import GRADIENT_TRAPS, OTHER_LOSSES, PLAIN, SIZES, Trap, lopsided, shares
from utils.checks.lab01.twin import Taken, Twin, Watch, make_optimizer, one_step_each, own_samples_alone, same_weights
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake

STEPS = 3


def verify(answer: Any) -> str:
    seen = run_cases(answer, {PLAIN.name: partial(observe, PLAIN)}, 4)[PLAIN.name]
    with on_case(PLAIN.name, seen, first=True):
        judge(PLAIN, seen)
    for ranks, traps in ((2, GRADIENT_TRAPS), (3, (PLAIN, SIZES))):
        cases = run_cases(answer, {trap.name: partial(observe, trap) for trap in traps}, ranks)
        for trap in traps:
            with on_case(trap.name, cases[trap.name]):
                judge(trap, cases[trap.name])
    return (
        f"over {STEPS} steps of SGD on 2, 3 and 4 ranks the gradients at each step are within 1e-5 of a single "
        "process's, the weights within 1e-6 a step, and every rank returns the mean loss of the whole batch; also with "
        "tied weights, frozen parameters, an unused layer."
    )


def observe(trap: Trap, answer: Any, mark: Mark, steps: int = STEPS) -> Taken:
    """In a rank: some steps, each on this rank's share of another batch."""
    model = trap.build()
    watch = Watch(model, make_optimizer(model), mark)
    for step in range(steps):
        inputs, targets = shares(dist.get_world_size(), step)[dist.get_rank()]
        watch.call(answer, model, watch.optimizer, lopsided, inputs, targets)
    return watch.taken()


def judge(trap: Trap, seen: Sequence[Seen], steps: int = STEPS) -> None:
    """In the notebook: each step's gradients, the loss and the weights beside the twin's."""
    ranks, twin = len(seen), Twin(trap)
    taken: list[Taken] = [each.value for each in seen]
    before = None
    for step in range(steps):
        batches = shares(ranks, step)
        one_step_each(taken, step)
        local = [twin.gradients(batch) for batch in batches]
        whole = scaled(added(local), 1 / ranks)
        suspects = [
            Suspect(
                [scaled(mine, 1 / ranks) for mine in local],
                "no gradient is averaged: the loss was divided by the number of ranks, and every rank has the "
                "gradients of its own shard.",
            )
        ]
        for loss, diagnosis in OTHER_LOSSES.items():
            other = scaled(added(twin.gradients(batch, loss) for batch in batches), 1 / ranks)
            suspects.append(Suspect([other] * ranks, diagnosis))
        if before is not None:
            suspects.append(
                Suspect(
                    [added([before, whole])] * ranks,
                    "from the second step on, the gradients of the step before are still in the sum: `zero_grad` is "
                    "missing.",
                )
            )
        compare(
            [each.steps[step][0] for each in taken],
            whole,
            local,
            mean_factors(ranks),
            suspects,
            _untouched(seen, whole),
            trap.frozen,
        )
        own_samples_alone(taken, step, [len(inputs) for inputs, _ in batches])
        before = whole
        losses = [lopsided(twin.model(inputs), targets).item() for inputs, targets in batches]
        _judge_loss([each.returned[step] for each in taken], losses)
        twin.step(batches)
        same_weights(taken, step, twin)
    if trap == PLAIN:
        reduced_once([seen[0].of_call(step) for step in range(steps)], whole)


def _untouched(seen: Sequence[Seen], whole: Any) -> str:
    """At the step every rank has its own gradients: what did it communicate, and when?"""
    size = sum(g.numel() * g.element_size() for g in whole.values() if g is not None)
    early = sum(op.bytes for op in seen[0].after("call 0"))
    after = seen[0].after("step 0")
    late = sum(op.bytes for op in after if op.kind != "broadcast")
    if late < size and any(op.kind == "broadcast" for op in after):
        return (
            "nothing is averaged: at `optimizer.step()` every rank has the gradients of its own shard, and rank 0's "
            "weights then overwrite the others', whose samples are lost."
        )
    if late >= size:
        return (
            "the averaging comes after the step: at `optimizer.step()` every rank still has the gradients of its own "
            f"shard, and only then {late} B are communicated."
        )
    if early:
        return (
            f"the gradients are not averaged: before `optimizer.step()` the ranks communicate {early} B, and the "
            f"gradients are {size} B. Averaging the loss changes what is printed, not what is learned."
        )
    return "nothing is averaged: at `optimizer.step()` every rank has the gradients of its own shard."


def _judge_loss(returned: Sequence[Any], local: Sequence[float]) -> None:
    mean = sum(local) / len(local)
    for rank, loss in enumerate(returned):
        if loss is None or isinstance(loss, str):
            raise Mistake(f"the step returns {loss}; it should return the mean loss over all ranks, a number.")
        if abs(loss - mean) <= 1e-5 * mean:
            continue
        if abs(loss - local[rank]) <= 1e-5 * mean:
            raise Mistake(
                f"the gradients are right, but the loss that rank {rank} returns is its own shard's ({loss:.3f}); "
                f"over all ranks it is {mean:.3f}."
            )
        if abs(loss - sum(local)) <= 1e-5 * mean * len(local):
            raise Mistake(f"the gradients are right, but the loss returned is the sum over {len(local)} ranks.")
        raise Mistake(f"the gradients are right, but rank {rank} returns the loss {loss:.3f} where it is {mean:.3f}.")
