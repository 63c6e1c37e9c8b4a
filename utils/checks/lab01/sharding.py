"""01.shard_indices: which samples a rank sees in an epoch.

Two styles are right: every sample on exactly one rank (sizes differ by at most one), or padded, so that every rank has
the same number and a few samples come twice.
"""

from __future__ import annotations

import builtins
import math
import operator
import random
from itertools import combinations, pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.distributed as dist

from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article

CASES = ((12, 3), (13, 4), (2, 4), (97, 2), (1, 1))  # (samples, ranks)
EPOCHS = 3
APART = ((13, 4), (97, 4))  # (samples, ranks) where rank r is asked in a process of its own; all on 4 ranks

Dealt = dict[tuple[int, int, int], list[Any]]  # (samples, ranks, epoch) -> by rank, the list or what it is instead


def verify(answer: Any) -> str:
    seen = run_cases(answer, {"indices": observe}, 1)["indices"][0]
    dealt, disturbs = seen.value
    try:
        for samples, ranks in CASES:
            judge(dealt, samples, ranks)
    except Mistake as mistake:
        kinds = ", ".join(dict.fromkeys(op.kind for op in seen.ops))
        if not kinds:
            raise
        raise Mistake(
            f"your function communicates ({kinds}), but here the ranks are asked one by one and cannot: the arguments "
            f"alone must give every rank the same order. {str(mistake)[0].upper()}{str(mistake)[1:]}"
        ) from None
    _judge_apart([each.value for each in run_cases(answer, {"own share": observe_own}, 4)["own share"]])
    padded = any(sum(map(len, dealt[s, n, 0])) > s for s, n in CASES)
    text = (
        "every sample reaches a rank and shares differ by at most one, for 12 samples on 3 ranks, 13 on 4, 2 on 4 and "
        "97 on 2; each epoch deals a new order, the same on every rank."
    )
    if padded:
        text += " Shares are padded: with 13 samples on 4 ranks some come twice, and the mean counts them twice."
    if disturbs:
        text += (
            " One remark: it moves a global random state, so that dropout and all other draws change with it; a "
            "`torch.Generator` of its own would not."
        )
    return text


def observe(answer: Any, mark: Mark) -> tuple[Dealt, bool]:
    """In a rank: the shares of all ranks, sizes and epochs; epoch 0 a second time under the number -1."""
    states = torch.get_rng_state().tolist(), random.getstate()
    dealt = {
        (samples, ranks, label): [as_list(answer(samples, rank, ranks, epoch)) for rank in range(ranks)]
        for samples, ranks in CASES
        for label, epoch in (*((e, e) for e in range(EPOCHS)), (-1, 0))
    }
    return dealt, states != (torch.get_rng_state().tolist(), random.getstate())


def observe_own(answer: Any, mark: Mark) -> dict[tuple[int, int], list[int] | str]:
    """In a rank: its own share by samples and epoch, where what differs between processes does differ."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1000 + rank)
    random.seed(1000 + rank)
    np.random.seed(1000 + rank)
    plain = hash

    def hash_here(value: Any) -> int:  # of text it is another one in each process that `torchrun` starts
        return plain((rank, value)) if isinstance(value, str | bytes) else plain(value)

    with patch.object(builtins, "hash", hash_here):
        return {
            (samples, epoch): as_list(answer(samples, rank, ranks, epoch))
            for samples, _ in APART
            for epoch in range(EPOCHS)
        }


def _judge_apart(own: list[dict[tuple[int, int], list[int] | str]]) -> None:
    """Raise Mistake unless shares that each rank found by itself are one deal. Numbers would vary from run to run."""
    for samples, ranks in APART:
        for epoch in range(EPOCHS):
            shares = [each[samples, epoch] for each in own]
            try:
                if any(isinstance(share, str) for share in shares):
                    raise Mistake("no list")
                _judge_deal(shares, samples, ranks, "")
            except Mistake:
                raise Mistake(
                    "with each rank asked in its own process, as in training, the shares no longer fit together: the "
                    "order hangs on what differs between processes, such as the global random state, "
                    "`torch.initial_seed()` or `hash` of a text. Seed a generator of its own with `epoch` alone."
                ) from None


def as_list(indices: Any) -> list[int] | str:
    """Whole numbers as a list; else, in words, what it is instead."""
    if indices is None:
        return "None (is there a `return`?)"
    if isinstance(indices, torch.Tensor):
        indices = indices.tolist()
    try:
        return [operator.index(i) for i in indices]
    except TypeError:
        kind = with_article(type(indices).__name__)
        return f"{kind} that holds more than whole numbers" if isinstance(indices, list | tuple) else kind


def judge(dealt: Dealt, samples: int, ranks: int) -> None:
    """Raise Mistake for the first thing that is wrong with one size, over all its epochs."""
    case = f"{samples} sample{'s' if samples > 1 else ''} on {ranks} rank{'s' if ranks > 1 else ''}"
    for epoch in range(EPOCHS):
        shares = dealt[samples, ranks, epoch]
        for rank, share in enumerate(shares):
            if isinstance(share, str):
                raise Mistake(f"the answer is a list of sample numbers; for {case}, rank {rank}, it is {share}.")
        _judge_deal(shares, samples, ranks, f"{case}, epoch {epoch}")
    if dealt[samples, ranks, 0] != dealt[samples, ranks, -1]:
        raise Mistake(
            f"{case}: asked twice for epoch 0, it deals differently. Every rank asks for itself, so the same "
            "arguments must give the same order: seed the generator with the epoch."
        )
    for early, late in combinations(range(EPOCHS), 2):
        deals = dealt[samples, ranks, early], dealt[samples, ranks, late]
        if samples >= 12:
            _judge_epochs(*deals, case, early, late)
        if samples >= 90:
            _judge_mixing(*deals, case, early, late)


def _judge_deal(shares: list[list[int]], samples: int, ranks: int, case: str) -> None:
    everything = [i for share in shares for i in share]
    strays = [i for i in everything if not 0 <= i < samples]
    if strays:
        raise Mistake(f"{case}: {strays[0]} is not a sample; they are numbered 0 to {samples - 1}.")
    if ranks > 1 and samples >= ranks and all(share == shares[0] for share in shares):
        extent = "all samples" if len(set(shares[0])) == samples else "the same shard"
        raise Mistake(f"{case}: every rank gets {extent}, so that the ranks compute the same gradients.")
    missing = samples - len(set(everything))
    twice = len(everything) - len(set(everything))
    fair = math.ceil(samples / ranks)
    if missing and twice:
        raise Mistake(
            f"{case}: {_count(missing)} on no rank and {_count(twice)} too often: the ranks do not cut one common "
            "order. Is the order drawn from the same seed on every rank?"
        )
    if missing:
        raise Mistake(f"{case}: {_count(missing)} on no rank: the remainder of {samples} / {ranks} is lost.")
    for rank, share in enumerate(shares):
        if len(share) > fair:
            raise Mistake(f"{case}: rank {rank} gets {_samples(len(share))}; an equal share is at most {fair}.")
    least, most = min(map(len, shares)), max(map(len, shares))
    if most - least > 1:
        raise Mistake(f"{case}: one rank gets {_samples(least)} and another {most}; they may differ by one.")


def _judge_epochs(first: list[list[int]], second: list[list[int]], case: str, early: int, late: int) -> None:
    if first == second:
        every = "there is no reshuffle" if late == early + 1 else "each epoch needs an order of its own"
        raise Mistake(f"{case}: epoch {late} deals exactly as epoch {early}: {every}.")
    if len(first) > 1 and [set(s) for s in first] == [set(s) for s in second]:
        raise Mistake(
            f"{case}: in epoch {late} every rank keeps the samples of epoch {early}, in another order: shuffle before "
            "dealing, so that samples change ranks."
        )


def _judge_mixing(before: list[list[int]], after: list[list[int]], case: str, early: int, late: int) -> None:
    """A permutation leaves about one pair of neighbours in a hundred together, and half of a share on one of 2 ranks.

    With 97 samples on 2 ranks, 0.85 of a share is five standard deviations above that half.
    """
    neighbours = [{pair for share in deal for pair in pairwise(share)} for deal in (before, after)]
    kept = len(neighbours[0] & neighbours[1]) / max(1, len(neighbours[1]))
    together = max(len(set(old) & set(new)) / max(1, len(set(new))) for old in before for new in after)
    if kept > 0.7 or together > 0.85:
        raise Mistake(
            f"{case}: epoch {late} deals the order of epoch {early} only moved along, so that the same samples "
            "stay together: draw a new permutation of all samples each epoch."
        )
    alike = _in_the_same_order(before, after)
    if not 0.1 <= alike <= 0.9:
        ascending = all(share == sorted(share) for deal in (before, after) for share in deal)
        how = "in ascending order" if ascending else "the reverse way" if alike < 0.5 else "in the same order"
        raise Mistake(
            f"{case}: each epoch deals other samples, but samples that meet again on a rank are visited {how} each "
            "time, so that neighbours share mini-batches again and again: return the share in the order drawn."
        )


def _in_the_same_order(before: list[list[int]], after: list[list[int]]) -> float:
    """Of all pairs of samples that share a rank in both epochs, the part that is visited in the same order.

    By chance it is a half. With 97 samples on 2 ranks a rank meets some 24 of its samples again, and the half has a
    standard deviation of 0.07 for each of the four pairs of shares: 0.9 is far out of reach.
    """
    same = pairs = 0
    for old in before:
        place = {sample: at for at, sample in enumerate(old)}
        for new in after:
            places = [place[sample] for sample in new if sample in place]
            for first, second in combinations(places, 2):
                same += first < second
                pairs += 1
    return same / pairs if pairs else 0.5


def _samples(number: int) -> str:
    return f"{number} sample{'' if number == 1 else 's'}"


def _count(number: int) -> str:
    return f"{number} sample{' is' if number == 1 else 's are'}"
