"""01.uneven_batches: ranks with different numbers of batches, of different sizes; every sample counts once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch.distributed as dist
from torch.nn.functional import mse_loss

from utils.checks.lab01.cases import on_case
from utils.checks.lab01.gradients import Gradients, Suspect, added, compare, scaled
from utils.checks.lab01.traps import FROZEN, PLAIN, TIED, UNUSED, Batch, Trap, shares
from utils.checks.lab01.twin import Taken, Twin, Watch, make_optimizer, one_step_each, same_weights
from utils.checks.ranks import Hang, Mark, Seen, run_cases
from utils.checks.verdict import Mistake

# By step, then by rank: how many samples that rank's batch has. 0: the rank has no batch left.
EQUAL_COUNTS = ((4, 4, 4), (4, 1, 2))
THREE_RANKS = ((4, 4, 4), (4, 1, 2), (3, 0, 0))
TWO_RANKS = ((4, 0), (2, 0), (5, 0))  # rank 1 has nothing at all

Sizes = tuple[tuple[int, ...], ...]


def verify(answer: Any) -> str:
    _verify(answer, (PLAIN,), EQUAL_COUNTS)
    _verify(answer, (PLAIN,), THREE_RANKS)  # alone: where it hangs, no later case may come in between
    _verify(answer, (TIED, FROZEN, UNUSED), THREE_RANKS)
    _verify(answer, (PLAIN,), TWO_RANKS)
    return (
        "at every step each rank has the gradients of all samples of that step, each counted once, within 1e-5 of a "
        "single process's; with batches of 4, 1 and 2 samples, with 3 batches on one rank and 2 on the others, and "
        "with a rank that has none; also with tied weights, frozen parameters, an unused layer."
    )


def _verify(answer: Any, traps: Sequence[Trap], sizes: Sizes) -> None:
    counts = [sum(1 for step in sizes if step[rank]) for rank in range(len(sizes[0]))]
    where = f"{', '.join(map(str, counts))} batches on ranks 0 to {len(counts) - 1}"
    try:
        cases = run_cases(answer, {trap.name: partial(observe, trap, sizes) for trap in traps}, len(counts))
    except Hang as hang:
        raise Mistake(
            f"with {where} the ranks hang: one that has no batch left must go on taking part until all are done. {hang}"
        ) from None
    for trap in traps:
        with on_case(f"{trap.name}, {where}", cases[trap.name], first=sizes is EQUAL_COUNTS):
            judge(trap, sizes, cases[trap.name])


def batches_of(sizes: Sizes) -> list[list[Batch]]:
    """By step, one batch for each rank (of no samples where it has none)."""
    return [shares(len(step), seed, step) for seed, step in enumerate(sizes)]


def observe(trap: Trap, sizes: Sizes, answer: Any, mark: Mark) -> Taken:
    """In a rank: one epoch over this rank's batches."""
    model = trap.build()
    watch = Watch(model, make_optimizer(model), mark)
    mine = [step[dist.get_rank()] for step in batches_of(sizes)]
    watch.call(answer, model, watch.optimizer, mse_loss, [batch for batch in mine if len(batch[0])])
    return watch.taken()


def judge(trap: Trap, sizes: Sizes, seen: Sequence[Seen]) -> None:
    """In the notebook: each step's gradients beside those of one process that has that step's samples joined."""
    twin = Twin(trap)
    taken: list[Taken] = [each.value for each in seen]
    _steps_taken(taken, sizes)
    for step, batches in enumerate(batches_of(sizes)):
        present = [batch for batch in batches if len(batch[0])]
        total = sum(sizes[step])
        means = [twin.gradients(batch) for batch in present]
        shares_of_sum = [scaled(mean, len(batch[0])) for mean, batch in zip(means, present, strict=True)]
        whole = scaled(added(shares_of_sum), 1 / total)
        silent = scaled(whole, 0.0)
        local = [twin.gradients(batch) if len(batch[0]) else silent for batch in batches]
        compare(
            [each.steps[0][step] for each in taken],
            whole,
            local,
            {
                total: "each rank's sum is added up, but never divided by the number of samples",
                total / len(present): "the sum is divided by the number of ranks that have a batch, not of samples",
                total / len(sizes[0]): "the sum is divided by the number of ranks, not of samples",
            },
            _suspects(means, len(sizes[0])),
        )
        twin.step(present)
    same_weights(taken, 0, twin, steps=len(sizes))


def _suspects(means: Sequence[Gradients], ranks: int) -> list[Suspect]:
    what = (
        "the ranks' means are averaged as if all had equally many samples: a rank with 1 sample counts as much as one "
        "with 4. Weight each by its count, or add sums and divide once by the count over all ranks."
    )
    return [Suspect([scaled(added(means), 1 / n)] * ranks, what) for n in {ranks, len(means)}]


def _steps_taken(taken: Sequence[Taken], sizes: Sizes) -> None:
    got = [len(each.steps[0]) for each in taken]
    if set(got) == {len(sizes)}:
        return
    if len(set(got)) > 1:
        raise Mistake(
            f"ranks take different numbers of steps, {', '.join(map(str, got))}: every rank must take each step, also "
            "without a batch of its own, or their weights part."
        )
    if got[0] < len(sizes):
        lost = sum(sum(step) for step in sizes[got[0] :])
        raise Mistake(
            f"the ranks stop after {got[0]} of {len(sizes)} steps, and {lost} samples are never seen: go on until the "
            "rank with the most batches is done."
        )
    one_step_each(taken, 0, len(sizes))
