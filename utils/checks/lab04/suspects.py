"""Gradients that a known mistake of sharding would leave, for `lab01.gradients.compare`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from utils.checks.lab01.gradients import Gradients, Suspect, added
from utils.checks.lab04.training import Case, Weights
from utils.checks.lab04.twin import Steps

LEARNING_RATE = 1.0  # of the plain SGD in `training.OPTIMIZERS`

Groups = Sequence[Sequence[str]]  # names of the parameters that are sliced together, in their order


def named(gradients: Gradients, names: Sequence[str]) -> dict[str, torch.Tensor | None]:
    return {name: gradients[name] for name in names}


def moved(before: Weights, after: Weights, names: Sequence[str]) -> dict[str, torch.Tensor]:
    return {name: (before[name] - after[name]) / LEARNING_RATE for name in names}


def suspects(case: Case, steps: Steps, step: int, groups: Groups, names: Sequence[str], ranks: int) -> list[Suspect]:
    """For one step with plain SGD: what each mistake would leave, told from how far the weights moved."""
    whole, before, after = steps.whole[step], steps.weights[step], steps.weights[step + 1]
    shapes = {name: value.shape for name, value in before.items()}

    def everyone(gradients: Gradients, diagnosis: str) -> Suspect:
        return Suspect([named(gradients, names)] * ranks, diagnosis)

    def regrouped(values: Gradients, change: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, torch.Tensor]:
        return _regrouped(values, groups, shapes, ranks, change)

    def alone(values: Gradients, rank: int) -> dict[str, torch.Tensor]:
        return regrouped(values, lambda rows: _row_alone(rows, rank))

    found = [
        everyone(
            regrouped(whole, lambda rows: torch.cat([rows[:-1], 0 * rows[-1:]])),
            "the last rank's slice is lost: its weights never move. Every slice counts, the last with its padding.",
        ),
        everyone(
            added(alone(mine, rank) for rank, mine in enumerate(steps.local[step])),
            "nothing is averaged: every rank steps its slice with the gradients of its own samples alone.",
        ),
        Suspect(
            [named(alone(whole, rank), names) for rank in range(ranks)],
            "every rank has the new weights of its own slice alone: all-gather them after the optimizer's step.",
        ),
        Suspect(
            [named(alone(mine, rank), names) for rank, mine in enumerate(steps.local[step])],
            "nothing is exchanged: every rank steps its own slice with its own gradients, and keeps the result.",
        ),
        everyone(
            moved(before, {**after, **regrouped(after, lambda rows: rows.flip(0))}, names),
            f"{_WRONG_ORDER}, the last rank's first. Slice r of the buffer is rank r's.",
        ),
    ]
    for shift, which in ((1, "before it"), (-1, "after it")):
        found += _turned(whole, before, after, names, everyone, regrouped, shift, which)
    if any(whole[name] is None for group in groups for name in group):
        full = [n for group in groups if all(whole[name] is not None for name in group) for n in group]
        found.append(
            everyone(
                {name: gradient if name in full else None for name, gradient in whole.items()},
                "a bucket in which a parameter is not used never becomes full, and is never reduced: `step()` is to "
                "take care of what is left.",
            )
        )
    if case.micro_batches[step] > 1:
        found.append(
            everyone(
                steps.last[step],
                "with several micro-batches the earlier ones are lost: only the last one's gradients are used. Add "
                "each result to the slice.",
            )
        )
    if step:
        found.append(
            everyone(
                added([whole, steps.whole[step - 1]]),
                f"in step {step} the gradients of the step before are still in the sum: after `step()` they are spent.",
            )
        )
    return found


_WRONG_ORDER = "the slices are gathered in the wrong order"


def _turned(
    whole: Gradients,
    before: Weights,
    after: Weights,
    names: Sequence[str],
    everyone: Callable[[Gradients, str], Suspect],
    regrouped: Callable[[Gradients, Callable[[torch.Tensor], torch.Tensor]], dict[str, torch.Tensor]],
    shift: int,
    which: str,
) -> list[Suspect]:
    """Slices of weights, of gradients, or of both, each moved on by `shift` ranks."""

    def turn(rows: torch.Tensor) -> torch.Tensor:
        return rows.roll(shift, 0)

    turned = {**before, **regrouped({name: before[name] for name in before}, turn)}
    stepped = {name: turned[name] - LEARNING_RATE * (0 if whole[name] is None else whole[name]) for name in names}
    order = f"{_WRONG_ORDER}: each stands where that of the rank {which} belongs. Slice r of the buffer is rank r's."
    return [
        everyone(moved(before, {**after, **regrouped(after, turn)}, names), order),
        everyone(moved(before, stepped, names), order),
        everyone(
            regrouped(whole, turn),
            f"each rank steps its slice with the gradients of the slice {which}: slice r is rank r's in both.",
        ),
    ]


def _row_alone(rows: torch.Tensor, rank: int) -> torch.Tensor:
    alone = torch.zeros_like(rows)
    alone[rank] = rows[rank]
    return alone


def _regrouped(
    values: Gradients,
    groups: Groups,
    shapes: dict[str, torch.Size],
    ranks: int,
    change: Callable[[torch.Tensor], torch.Tensor],
) -> dict[str, torch.Tensor | None]:
    """`values` with each group's flat, padded numbers, as (ranks, length), changed."""
    result = dict(values)
    for group in groups:
        parts = [
            torch.zeros(shapes[name].numel()) if values.get(name) is None else values[name].flatten() for name in group
        ]
        flat = torch.cat(parts)
        length = -(-len(flat) // ranks)
        padded = torch.cat([flat, flat.new_zeros(ranks * length - len(flat))])
        changed = change(padded.view(ranks, length)).flatten()
        for name, part in zip(group, changed[: len(flat)].split([len(part) for part in parts]), strict=True):
            result[name] = part.view(shapes[name])
    return result
