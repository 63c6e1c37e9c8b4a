"""02.overlap and 02.overlap_unused: buckets all-reduced while backward goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from utils.checks.lab01.cases import cost, on_case
from utils.checks.lab01.gradients import (
    Gradients,
    added,
    agree,
    compare,
    disagreeing,
    gradients_of,
    mean_factors,
    scaled,
)
from utils.checks.lab01.traps import Batch, Trap, lopsided, shares
from utils.checks.lab02.order import NOT_READY, Noted, judge_amount, judge_overlap
from utils.checks.lab02.suspects import divided_by_buckets, overwritten, suspects
from utils.checks.lab02.traps import DEEP, NEVER_USED, OVERLAP_TRAPS, SIZES, SOMETIMES_USED, TWO_WAYS, laid, size_of
from utils.checks.lab02.watching import watched
from utils.checks.ranks import STEP, Hang, Mark, Seen, hold_back, run_cases
from utils.checks.verdict import Mistake, with_article

AFTER_ANOTHER = ", after another micro-batch"
CALLS = 2  # two steps, each with a backward of its own


@dataclass(frozen=True)
class After:
    """One rank after the answer.

    gradients  by call, after `finish()`
    bare       of the backward between the calls, in which the answer has no part
    noted      by call, what happened during backward
    returned   the kind of thing that came back in place of `finish`, or ""
    spoilt     whether the answer has changed the lists of the buckets themselves
    """

    gradients: tuple[Gradients, ...] = ()
    bare: Gradients | None = None
    noted: tuple[Noted, ...] = ()
    returned: str = ""
    spoilt: bool = False


def verify(answer: Any) -> str:
    """Where every parameter of the buckets gets a gradient."""
    seen = run_cases(answer, {DEEP.name: partial(observe, DEEP, held_back=True)}, 4)[DEEP.name]
    _hooks_left(seen)
    with on_case(DEEP.name, seen, first=True):
        judge(DEEP, seen)
    after_another = DEEP.name + AFTER_ANOTHER
    for ranks, traps in ((2, OVERLAP_TRAPS), (3, (DEEP, SIZES))):
        tried = {trap.name: partial(observe, trap) for trap in traps}
        if ranks == 2:
            tried[after_another] = partial(observe, DEEP, earlier=True, calls=1)
        cases = run_cases(answer, tried, ranks)
        for trap in traps:
            with on_case(trap.name, cases[trap.name]):
                judge(trap, cases[trap.name])
        if ranks == 2:
            with on_case(after_another, cases[after_another]):
                judge(DEEP, cases[after_another], earlier=True)
    size = sum(size_of(p) for p in DEEP.build().parameters())
    return (
        "every bucket is issued as soon as it is full, before backward ends, and in the same order on all ranks; "
        "nothing waits during backward; gradients within 1e-5 of a single process's on 2, 3 and 4 ranks, also with "
        "tied weights, frozen parameters, one large and many tiny tensors, gradients that become ready in another "
        "order on each rank, and on top of an earlier micro-batch. "
        f"Cost of 2 steps on 4 ranks, by the ring's rules: {cost(seen, size)}."
    )


def verify_unused(answer: Any) -> str:
    """Where some parameters get no gradient in this backward, on all ranks or on one."""
    for ranks, earlier in ((4, False), (2, True)):
        where = SOMETIMES_USED.name + (AFTER_ANOTHER if earlier else "")
        try:
            case = partial(observe, SOMETIMES_USED, earlier=earlier, calls=1, held_back=not earlier)
            seen = run_cases(answer, {where: case}, ranks)[where]
        except Hang as hang:
            raise Mistake(
                f"on {where}: a bucket holds a parameter whose gradient never becomes ready on rank 0, so that rank 0 "
                f"does not send it, and the others wait for ever. `finish` must send what is left. ({hang})"
            ) from None
        _hooks_left(seen)
        with on_case(where, seen):
            judge(SOMETIMES_USED, seen, unused=True, earlier=earlier)
    traps = (NEVER_USED, DEEP, TWO_WAYS)
    cases = run_cases(answer, {trap.name: partial(observe, trap) for trap in traps}, 2)
    for trap in traps:
        with on_case(trap.name, cases[trap.name]):
            judge(trap, cases[trap.name], unused=True)
    return (
        "with a layer that no rank uses, or that rank 0 does not use, every bucket reaches every rank and the averages "
        "are within 1e-5 of a single process's, also on top of an earlier micro-batch; buckets before the missing "
        "gradient are still issued during backward."
    )


def observe(
    trap: Trap, answer: Any, mark: Mark, earlier: bool = False, calls: int = CALLS, held_back: bool = False
) -> After:
    """In a rank: two steps, and between them a backward without the answer.

    earlier: each step has a micro-batch before it whose gradients are there already, of a model that uses all layers.
    held_back: one rank comes late to the first step, so that what nobody waits for cannot be over.
    """
    model = trap.build()
    batches = shares(dist.get_world_size())
    mine = batches[dist.get_rank()]
    buckets = laid(model)
    ready = sum(gradient is not None for gradient in _local(trap, mine, False).values())
    gradients, noted, bare = [], [], None
    for call in range(calls):
        model.zero_grad()
        if earlier:
            add_micro_batch(model, mine)
        if held_back and call == 0:
            hold_back(dist.get_world_size() - 1)
        with watched(buckets, call, mark, ready) as watch:
            mark(f"call {call}")
            handed = [list(bucket) for bucket in buckets]
            finish = answer(handed)
            if not callable(finish):
                return After(returned=with_article(type(finish).__name__))
            mark(f"{STEP}{call}, backward")
            with watch.backward():
                lopsided(model(mine[0]), mine[1]).backward()
            mark(f"{STEP}{call}, finish")
            finish()
            mark(f"returned {call}")
        if [[id(p) for p in bucket] for bucket in handed] != [[id(p) for p in bucket] for bucket in buckets]:
            return After(spoilt=True)
        gradients.append(gradients_of(model))
        sizes = tuple(tuple(map(size_of, bucket)) for bucket in buckets)
        noted.append(Noted(sizes, tuple(watch.order), tuple(watch.blocked)))
        if call == 0:
            model.zero_grad()
            lopsided(model(mine[0]), mine[1]).backward()
            bare = gradients_of(model)
    return After(tuple(gradients), bare, tuple(noted))


def add_micro_batch(model: nn.Module, batch: Batch) -> None:
    """Gradients of other inputs on top of what is there: through all layers, if the model may skip one."""
    used = getattr(model, "uses_spare", None)
    model.uses_spare = "always"
    lopsided(model(batch[0].flip(1)), batch[1]).backward()
    model.uses_spare = used


def judge(trap: Trap, seen: Sequence[Seen], unused: bool = False, earlier: bool = False) -> None:
    """In the notebook: what was sent, the gradients beside the twin's, then when it was sent."""
    ranks = len(seen)
    local = [_local(trap, batch, earlier) for batch in shares(ranks)]
    this_one = [_local(trap, batch, False) for batch in shares(ranks)]
    whole = scaled(added(local), 1 / ranks)
    after: list[After] = [each.value for each in seen]
    for each in after:
        if each.returned:
            raise Mistake(
                f"your function returns {each.returned}; it is to return the function `finish`, which is called after "
                "backward (`return finish`, not `return finish()`)."
            )
        if each.spoilt:
            raise Mistake("your function changes `buckets` itself, which the next step uses again: take a copy.")
    extra = NOT_READY * len(whole) if unused else 0
    for call in range(len(after[0].noted)):
        noted = [each.noted[call] for each in after]
        judge_amount(seen, call, noted, extra, earlier)
        if unused:
            _left_out([each.gradients[call] for each in after], whole)
        _mixed_up(trap, after[0].gradients[call], whole)
        compare(
            [each.gradients[call] for each in after],
            whole,
            local,
            divided_by_buckets(trap, ranks) | mean_factors(ranks),
            [*suspects(trap, local, whole), *(overwritten(local, this_one) if earlier else ())],
            "every bucket is all-reduced, but the result never comes back: `.grad` still holds each rank's own "
            "gradient. Copy each part of the bucket into it.",
            trap.frozen,
        )
        if call == 0:
            _acts_on(after, this_one)
        judge_overlap(seen, call, noted, extra)


def _local(trap: Trap, batch: Batch, earlier: bool) -> Gradients:
    model = trap.build()
    if earlier:
        add_micro_batch(model, batch)
    lopsided(model(batch[0]), batch[1]).backward()
    return gradients_of(model)


def _left_out(got: Sequence[Gradients], whole: Gradients) -> None:
    for rank, gradients in enumerate(got):
        for name, wanted in whole.items():
            if wanted is not None and gradients[name] is None:
                raise Mistake(
                    f"rank {rank} did not use `{name}`, but another rank did: its average is not zero. Give rank "
                    f"{rank} zeros to contribute, and keep the result as its `.grad`, or the ranks' weights part."
                )


def _hooks_left(seen: Sequence[Seen]) -> None:
    """Raise Mistake if the answer communicates in a backward for which it was not called."""
    for each in seen:
        if each.after("returned 0"):
            raise Mistake(
                "after `finish()` your hooks are still there: the next backward all-reduces again, though your "
                "function was not called. `finish` is to remove them: keep what `when_full` returned, and call "
                "`.remove()` of each."
            )


def _acts_on(after: Sequence[After], local: Sequence[Gradients]) -> None:
    """Raise Mistake if the answer changes gradients in a backward for which it was not called."""
    for each, mine in zip(after, local, strict=True):
        if disagreeing(each.bare, mine):
            raise Mistake(
                "after `finish()` your hooks still change gradients in the next backward, though your function was not "
                "called: remove them in `finish`."
            )


def _mixed_up(trap: Trap, got: Gradients, whole: Gradients) -> None:
    """Raise Mistake if a bucket holds the right numbers, but in other places."""
    model = trap.build()
    names = {id(p): name for name, p in model.named_parameters()}
    for number, bucket in enumerate(laid(model)):
        of_bucket = [names[id(p)] for p in bucket]
        if any(got[name] is None or whole[name] is None for name in of_bucket):
            continue
        mine, wanted = (torch.cat([g[name].flatten() for name in of_bucket]) for g in (got, whole))
        if agree(mine.sort().values, wanted.sort().values) and not agree(mine, wanted):
            raise Mistake(
                f"bucket {number} comes back with the right numbers in wrong places: split it in the order in which "
                "its gradients were put together."
            )
