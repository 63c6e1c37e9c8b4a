"""Gradients that known mistakes of 02.overlap and 02.overlap_unused leave, and those mistakes in words."""

from __future__ import annotations

from collections.abc import Sequence

from utils.checks.lab01.gradients import Gradients, Suspect, added, scaled
from utils.checks.lab01.traps import Trap
from utils.checks.lab02.traps import laid


def suspects(trap: Trap, local: Sequence[Gradients], whole: Gradients) -> list[Suspect]:
    """What known mistakes leave in place of the mean `whole` over the ranks' own gradients, `local`."""
    model = trap.build()
    last = {id(p) for p in laid(model)[-1]}
    names = {name for name, p in model.named_parameters() if id(p) in last}
    of_last = [{name: (whole if name in names else mine)[name] for name in whole} for mine in local]
    ranks = len(local)
    weights = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    users = {name: sum(mine[name] is not None for mine in local) for name in whole}
    shared = {name: g if g is None else g * ranks / users[name] for name, g in whole.items()}
    return [
        Suspect(of_last, "only the last bucket's average comes back: keep every bucket and its work until `finish`."),
        Suspect(
            [scaled(mine, 1 / ranks) for mine in local],
            "each rank has its own gradients, divided by the number of ranks: the tensor that comes back is not the "
            "one that was all-reduced.",
        ),
        Suspect(
            [added([mine, whole]) for mine in local],
            "the mean is added to each rank's own gradient: it is to stand in its place (`copy_`, not `+=`).",
        ),
        *(
            Suspect([scaled(weights, factor)] * ranks, "the buckets hold the weights themselves: flatten `p.grad`.")
            for factor in (1, ranks)
        ),
        Suspect(
            [shared] * ranks,
            "a parameter's sum is divided by the number of ranks that used it: the mean is over all ranks, those that "
            "did not use it count as zeros.",
        ),
    ]


def divided_by_buckets(trap: Trap, ranks: int) -> dict[float, str]:
    """The factor that this mistake leaves, as `compare` takes it."""
    count = len(laid(trap.build()))
    return {ranks / count: f"the sum is divided by {count}, the number of buckets, not of ranks"}


def overwritten(local: Sequence[Gradients], this_one: Sequence[Gradients]) -> list[Suspect]:
    """Gradients of which an earlier micro-batch's part is lost: all, or where the last did not use the parameter.

    By rank, `local` with that part, `this_one` without it.
    """
    ranks = len(local)
    left = [
        {name: mine[name] if last[name] is not None else None for name in mine}
        for mine, last in zip(local, this_one, strict=True)
    ]
    return [
        Suspect(
            [scaled(added(this_one), 1 / ranks)] * ranks,
            "what an earlier micro-batch has left in `.grad` is lost: only this backward's gradients are there.",
        ),
        Suspect(
            [scaled(added(left), 1 / ranks)] * ranks,
            "a gradient that an earlier micro-batch has left is overwritten with zeros: only a `.grad` that is None "
            "becomes zeros.",
        ),
    ]
