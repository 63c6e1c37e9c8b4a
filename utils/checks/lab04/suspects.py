"""What known mistakes of sharding would leave, for `lab01.gradients.compare`: told from how far the weights moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from utils.checks.lab01.gradients import Gradients, Suspect, added
from utils.checks.lab04.reading import Weights
from utils.checks.lab04.training import Case
from utils.checks.lab04.twin import Steps

LEARNING_RATE = 1.0  # of the plain SGD in `made.OPTIMIZERS`

Groups = Sequence[Sequence[str]]  # names of the parameters that are sliced together, in their order
Change = Callable[[torch.Tensor, int], torch.Tensor]  # (a group's slices (ranks, length), its padding) -> the same


def named(gradients: Gradients, names: Sequence[str]) -> dict[str, torch.Tensor | None]:
    """Those of these names."""
    return {name: gradients[name] for name in names}


def moved(before: Weights, after: Weights, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """The gradients with which plain SGD gets from one to the other."""
    return {name: (before[name] - after[name]) / LEARNING_RATE for name in names}


@dataclass(frozen=True)
class Slices:
    """How the numbers of a model lie in the slices of so many ranks."""

    groups: Groups
    shapes: dict[str, torch.Size]
    ranks: int

    def changed(self, values: Gradients, change: Change) -> dict[str, torch.Tensor | None]:
        """`values` with each group's slices changed; None counts as zeros."""
        result = dict(values)
        for group in self.groups:
            numels = [self.shapes[name].numel() for name in group]
            given = [values.get(name) for name in group]
            flat = torch.cat([torch.zeros(n) if v is None else v.flatten() for v, n in zip(given, numels, strict=True)])
            padding = -len(flat) % self.ranks
            rows = torch.cat([flat, flat.new_zeros(padding)]).view(self.ranks, -1)
            for name, part in zip(group, change(rows, padding).flatten()[: len(flat)].split(numels), strict=True):
                result[name] = part.view(self.shapes[name])
        return result

    def alone(self, values: Gradients, rank: int) -> dict[str, torch.Tensor | None]:
        """The slices of one rank; zeros elsewhere."""

        def keep(rows: torch.Tensor, padding: int) -> torch.Tensor:
            kept = torch.zeros_like(rows)
            kept[rank] = rows[rank]
            return kept

        return self.changed(values, keep)


def suspects(case: Case, steps: Steps, step: int, groups: Groups, names: Sequence[str], ranks: int) -> list[Suspect]:
    """For one step with plain SGD."""
    whole, local, before = steps.whole[step], steps.local[step], steps.weights[step]
    slices = Slices(groups, {name: value.shape for name, value in before.items()}, ranks)
    for_all = [
        *_of_slices(slices, whole, before, steps.weights[step + 1], names),
        (
            added(slices.alone(mine, rank) for rank, mine in enumerate(local)),
            "nothing is reduced: each slice is stepped with its own rank's gradients alone.",
        ),
        *_of_buckets(whole, groups),
        *_of_time(case, steps, step, groups),
    ]
    partly = "of some buckets every rank has the new weights of its own slice alone: all-gather each bucket."
    return [
        *(Suspect([named(gradients, names)] * ranks, diagnosis) for gradients, diagnosis in for_all),
        Suspect(
            [named(slices.alone(whole, rank), names) for rank in range(ranks)],
            "every rank has the new weights of its own slice alone: all-gather them after the optimizer's step.",
        ),
        *(
            Suspect([named({**slices.alone(whole, rank), **gathered}, names) for rank in range(ranks)], partly)
            for gathered in ({name: whole[name] for name in group} for group in (groups[0], groups[-1]))
        ),
        Suspect(
            [named(slices.alone(mine, rank), names) for rank, mine in enumerate(local)],
            "nothing is exchanged: every rank steps its own slice with its own gradients, and keeps the result.",
        ),
    ]


def _of_slices(
    slices: Slices, whole: Gradients, before: Weights, after: Weights, names: Sequence[str]
) -> list[tuple[Gradients, str]]:
    """Slices lost, or of weights or gradients in another place."""

    def weights(change: Change) -> Gradients:
        return moved(before, {**after, **slices.changed(after, change)}, names)

    mixed = slices.changed(whole, lambda rows, padding: rows.mean(0, keepdim=True).expand_as(rows))
    padded = "moved by the padding: it stands behind the numbers, in weights and in gradients, and is cut off there."
    found = [
        (
            slices.changed(whole, lambda rows, padding: torch.cat([rows[:-1], 0 * rows[-1:]])),
            "the last rank's slice is lost: its weights never move. Every slice counts, the last with its padding.",
        ),
        (
            slices.changed(whole, _without_rest),
            "the last numbers of a bucket, the rest that N does not divide, never move: pad, and every slice counts.",
        ),
        (
            weights(lambda rows, padding: rows.flip(0)),
            "the slices are gathered in the wrong order, the last rank's first. Slice r of the buffer is rank r's.",
        ),
    ]
    found.append((mixed, "the ranks' slices are averaged with each other: after the reduce-scatter each stands alone."))
    for sign in (1, -1):
        by_padding = _rolled(sign)
        found.append((slices.changed(whole, by_padding), f"the gradients are {padded}"))
        found.append((weights(by_padding), f"the new weights are {padded}"))
    for shift, which in ((1, "before it"), (-1, "after it")):

        def turn(rows: torch.Tensor, padding: int, shift: int = shift) -> torch.Tensor:
            return rows.roll(shift, 0)

        turned = slices.changed(before, turn)
        stepped = {n: turned[n] if whole[n] is None else turned[n] - LEARNING_RATE * whole[n] for n in names}
        order = (
            f"the slices are gathered in the wrong order: each stands where that of the rank {which} belongs. Slice r "
            "of the buffer is rank r's."
        )
        found += [
            (weights(turn), order),
            (moved(before, stepped, names), order),
            (
                slices.changed(whole, turn),
                f"each rank steps its slice with the gradients of the slice {which}: slice r is rank r's in both.",
            ),
        ]
    return found


def _of_buckets(whole: Gradients, groups: Groups) -> list[tuple[Gradients, str]]:
    """A step for each bucket, in which earlier ones are stepped again."""
    times = {name: len(groups) - number for number, group in enumerate(groups) for name in group}
    again = {name: None if whole[name] is None else times[name] * whole[name] for name in times}
    return [
        (
            {**whole, **again},
            "the optimizer steps once for each bucket, the first bucket's slice again each time: step once, when every "
            "master has its gradient.",
        )
    ]


def _of_time(case: Case, steps: Steps, step: int, groups: Groups) -> list[tuple[Gradients, str]]:
    """Gradients of another moment, or that come too late."""
    whole, found = steps.whole[step], []
    if any(whole[name] is None for group in groups for name in group):
        full = {n for group in groups if all(whole[name] is not None for name in group) for n in group}
        found.append(
            (
                {name: gradient if name in full else None for name, gradient in whole.items()},
                "a bucket in which a parameter is not used never becomes full, and is never reduced: `step()` is to "
                "take care of what is left, and of weights that are still gathered.",
            )
        )
    if case.micro_batches[step] > 1:
        found.append(
            (
                steps.last[step],
                "with several micro-batches the earlier ones are lost: only the last one's gradients are used. Add "
                "each result to the slice.",
            )
        )
    if step:
        found.append(
            (
                added([whole, steps.whole[step - 1]]),
                f"in step {step} the gradients of the step before are still in the sum: after `step()` they are spent.",
            )
        )
    return found


def _rolled(sign: int) -> Change:
    return lambda rows, padding: rows.flatten().roll(sign * padding)


def _without_rest(rows: torch.Tensor, padding: int) -> torch.Tensor:
    """Zeros in place of the rest of a division by the number of ranks."""
    flat = rows.flatten().clone()
    numbers = len(flat) - padding
    flat[numbers - numbers % len(rows) :] = 0
    return flat
