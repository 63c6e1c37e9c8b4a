"""01.uneven_batches: ranks with different numbers of batches, of different sizes; every sample counts once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import torch.distributed as dist
from torch.distributed.algorithms.join import Join

from utils.checks.lab01.cases import on_case
from utils.checks.lab01.gradients import Gradients, Suspect, added, compare, scaled
from utils.checks.lab01.traps import FROZEN, OTHER_LOSSES, PER_RANK, PLAIN, TIED, UNUSED, Batch, Trap, lopsided, shares
from utils.checks.lab01.twin import (
    Taken,
    Twin,
    Watch,
    make_optimizer,
    no_closure,
    one_step_each,
    own_samples_alone,
    same_weights,
)
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
    _verify(answer, (TIED, FROZEN), THREE_RANKS)
    _verify(answer, (UNUSED,), THREE_RANKS)
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
        if traps == (UNUSED,):
            raise _unused(hang, where) from None
        raise Mistake(
            f"with {where} the ranks hang: one that has no batch left must go on taking part until all are done. {hang}"
        ) from None
    except Mistake as mistake:
        if traps == (UNUSED,):
            raise _unused(mistake, where) from None
        raise
    for trap in traps:
        with on_case(f"{trap.name}, {where}", cases[trap.name], first=sizes is EQUAL_COUNTS):
            _judge_joined(trap, sizes, cases[trap.name])


def _judge_joined(trap: Trap, sizes: Sizes, seen: Sequence[Seen]) -> None:
    """As `judge`; where torch's own way for uneven ranks was used, say in front what it does."""
    try:
        judge(trap, sizes, seen)
    except Mistake as mistake:
        if any(each.value.joins for each in seen):
            raise Mistake(
                "DDP's `join` averages over ranks, not over samples, and a rank without a batch takes no step (it is "
                f"sent the weights at the end). Here: {mistake}"
            ) from None
        raise


def _unused(mistake: Mistake, where: str) -> Mistake:
    """The only trap of that launch is the model with an unused layer, and all others went well before."""
    unused = [name for name, gradient in Twin(UNUSED).gradients(shares(1)[0]).items() if gradient is None]
    return Mistake(
        f"on {UNUSED.name}, {where}: {' and '.join(f'`{name}`' for name in unused)} have no gradient on the ranks that "
        "have a batch. A rank without one must contribute for the same parameters as the others, and the others then "
        f"for the same as it: where a gradient is None, put zeros on every rank, or on none. {mistake}"
    )


def batches_of(sizes: Sizes) -> list[list[Batch]]:
    """By step, one batch for each rank (of no samples where it has none)."""
    return [shares(len(step), seed, step) for seed, step in enumerate(sizes)]


def observe(trap: Trap, sizes: Sizes, answer: Any, mark: Mark) -> Taken:
    """In a rank: one epoch over this rank's batches."""
    model = trap.build()
    watch = Watch(model, make_optimizer(model), mark)
    mine = [step[dist.get_rank()] for step in batches_of(sizes)]
    enter = Join.__enter__

    def noted(join: Join) -> None:
        watch.joins = True
        enter(join)

    with patch.object(Join, "__enter__", noted):
        watch.call(answer, model, watch.optimizer, lopsided, [batch for batch in mine if len(batch[0])])
    return watch.taken()


def judge(trap: Trap, sizes: Sizes, seen: Sequence[Seen]) -> None:
    """In the notebook: each step's gradients beside those of one process that has that step's samples joined."""
    twin = Twin(trap)
    taken: list[Taken] = [each.value for each in seen]
    _steps_taken(taken, sizes)
    ranks, before = len(seen), None
    last: list[Batch | None] = [None] * ranks
    for step, batches in enumerate(batches_of(sizes)):
        present = [batch for batch in batches if len(batch[0])]
        total = sum(sizes[step])
        means = [twin.gradients(batch) for batch in present]
        shares_of_sum = [scaled(mean, len(batch[0])) for mean, batch in zip(means, present, strict=True)]
        whole = scaled(added(shares_of_sum), 1 / total)
        silent = scaled(whole, 0.0)
        local = [twin.gradients(batch) if len(batch[0]) else silent for batch in batches]
        suspects = _suspects(means, ranks)
        if before is not None:
            for kept in (ranks / total, ranks, 1.0):
                suspects.append(
                    Suspect(
                        [added([scaled(before, kept), whole])] * ranks,
                        "from the second step on, the gradients of the step before are still in the sum: `zero_grad` "
                        "is missing, which every rank needs before each step.",
                    )
                )
        last = [batch if len(batch[0]) else old for batch, old in zip(batches, last, strict=True)]
        if None not in last:
            again = [scaled(twin.gradients(batch), len(batch[0])) for batch in last]
            for count in {sum(len(batch[0]) for batch in last), total}:
                suspects.append(
                    Suspect(
                        [scaled(added(again), 1 / count)] * ranks,
                        "a rank whose batches are used up repeats its last one: those samples count a second time.",
                    )
                )
        for loss, diagnosis in OTHER_LOSSES.items():
            other = [scaled(twin.gradients(batch, loss), len(batch[0])) for batch in present]
            suspects.append(Suspect([scaled(added(other), 1 / total)] * ranks, diagnosis))
        compare(
            [each.steps[0][step] for each in taken],
            whole,
            local,
            {
                total: "each rank's sum is added up, but never divided by the number of samples",
                total / len(present): "the sum is divided by the number of ranks that have a batch, not of samples",
                total / ranks: "the sum is divided by the number of ranks, not of samples",
                1 / ranks: "the gradients are weighted by each rank's count and then averaged over the ranks as well: "
                "weighted gradients are only to be added up",
                total / PER_RANK / ranks: f"each batch is weighted as a part of a full one of {PER_RANK} samples, and "
                "the sum divided by the number of ranks: divide by the samples of this step",
            },
            suspects,
            frozen=trap.frozen,
        )
        before = whole
        twin.step(present)
    # A batch may be padded to the longest of its step, and a rank without one may repeat what it likes.
    longest = sum(map(max, sizes))
    own_samples_alone(taken, 0, [longest if all(step[rank] for step in sizes) else None for rank in range(ranks)])
    same_weights(taken, 0, twin, steps=len(sizes))


def _suspects(means: Sequence[Gradients], ranks: int) -> list[Suspect]:
    what = (
        "the ranks' means are averaged as if all had equally many samples: a rank with 1 sample counts as much as one "
        "with 4. Weight each by its count, or add sums and divide once by the count over all ranks."
    )
    return [Suspect([scaled(added(means), 1 / n)] * ranks, what) for n in {ranks, len(means)}]


def _steps_taken(taken: Sequence[Taken], sizes: Sizes) -> None:
    no_closure(taken)
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
