"""Gradients of every rank beside those of a single-process twin, and the name of the mistake that tells them apart.

Two gradients agree if no entry differs by more than TOLERANCE times the twin's largest entry, or times a hundredth of
the largest entry of any of its gradients: a sum that nearly cancels keeps the rounding of its parts. The order in which
numbers are added differs between one process and N, so bitwise equality is never asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import nn

from utils.checks.verdict import Mistake

TOLERANCE = 1e-5
FLOOR = 0.01

Gradients = Mapping[str, torch.Tensor | None]  # by parameter name; a tied parameter once; None: no gradient


class Suspect(NamedTuple):
    """A wrong gradient that a known mistake would leave, and that mistake in words."""

    gradients: Sequence[Gradients]  # by rank
    diagnosis: str


def gradients_of(model: nn.Module) -> dict[str, torch.Tensor | None]:
    """A copy of every parameter's gradient."""
    return {name: None if p.grad is None else p.grad.detach().clone() for name, p in model.named_parameters()}


def scaled(gradients: Gradients, factor: float) -> dict[str, torch.Tensor | None]:
    return {name: None if g is None else factor * g for name, g in gradients.items()}


def added(parts: Iterable[Gradients]) -> dict[str, torch.Tensor | None]:
    """Sum by name; None counts as nothing, and stays None where no part has a gradient."""
    total: dict[str, torch.Tensor | None] = {}
    for part in parts:
        for name, gradient in part.items():
            have = total.get(name)
            total[name] = have if gradient is None else gradient if have is None else have + gradient
    return total


def agree(got: torch.Tensor | None, wanted: torch.Tensor | None, floor: float = 0.0) -> bool:
    """Within TOLERANCE of the largest entry, or of `floor`; a gradient of zeros agrees with none at all."""
    if got is None or wanted is None:
        present = wanted if got is None else got
        return present is None or not present.any()
    if got.shape != wanted.shape:
        return False
    scale = max(_largest(wanted), floor)
    return bool(((got.double() - wanted.double()).abs() <= TOLERANCE * scale + 1e-12).all())


def all_agree(got: Sequence[Gradients], wanted: Sequence[Gradients]) -> bool:
    return not any(disagreeing(g, w) for g, w in zip(got, wanted, strict=True))


def disagreeing(got: Gradients, wanted: Gradients) -> list[str]:
    """The names whose gradients differ."""
    floor = FLOOR * max((_largest(gradient) for gradient in wanted.values()), default=0.0)
    return [name for name in wanted if not agree(got.get(name), wanted[name], floor)]


def _largest(gradient: torch.Tensor | None) -> float:
    return gradient.abs().max().item() if gradient is not None and gradient.numel() else 0.0


def compare(
    got: Sequence[Gradients],
    wanted: Gradients,
    local: Sequence[Gradients],
    factors: Mapping[float, str],
    suspects: Sequence[Suspect] = (),
    untouched: str = "nothing is averaged: every rank still has the gradients of its own shard.",
    frozen: Collection[str] = (),
) -> None:
    """Return if every rank's gradients agree with the twin's; else raise Mistake with the closest diagnosis.

    got       by rank, after the answer
    wanted    the twin's
    local     by rank, before any communication
    factors   named mistakes that multiply every gradient by a number
    suspects  named mistakes that leave some other known gradient
    untouched the diagnosis where every rank still has its local gradients
    frozen    names of parameters that do not train and must be left without a gradient
    """
    ranks = len(got)
    _frozen(got, frozen)
    if all_agree(got, [wanted] * ranks):
        return
    _presence(got, wanted)
    if ranks > 1 and all_agree(got, local):
        raise Mistake(untouched)
    for factor, diagnosis in factors.items():
        if factor != 1 and all_agree(got, [scaled(wanted, factor)] * ranks):
            where = f" on {ranks} ranks" if factor in (ranks, 1 / ranks) else ""
            raise Mistake(f"{diagnosis}: every one is {_times(factor)}{where}.")
    for suspect in suspects:
        if all_agree(got, suspect.gradients):
            raise Mistake(suspect.diagnosis)
    _one_rank_for_all(got, local)
    _some_ranks(got, wanted)
    _some_parameters(got, wanted, local)
    _constant_factor(got, wanted)
    _crossed(got, local)
    _first_difference(got, wanted)


def mean_factors(ranks: int) -> dict[float, str]:
    """Named mistakes in averaging over that many ranks, where 4 ranks are tried first."""
    factors = {
        ranks: "the gradients are summed, not averaged",
        1 / ranks: "the gradients are averaged twice: their mean is divided by the number of ranks once more",
    }
    if ranks != 4:
        factors[ranks / 4] = (
            f"the sum over {ranks} ranks is divided by 4, which is right on 4 ranks alone (use `dist.get_world_size()`)"
        )
    return factors


def _frozen(got: Sequence[Gradients], frozen: Collection[str]) -> None:
    for rank, gradients in enumerate(got):
        for name in frozen:
            mine = gradients.get(name)
            if mine is not None and not mine.any():
                raise Mistake(
                    f"`{name}` is frozen, and on rank {rank} its `.grad` is a tensor of zeros: with weight decay "
                    "`optimizer.step()` would move it. Leave it None."
                )


def _presence(got: Sequence[Gradients], wanted: Gradients) -> None:
    for rank, gradients in enumerate(got):
        for name, twin in wanted.items():
            mine = gradients.get(name)
            if twin is None and mine is not None and mine.any():
                raise Mistake(f"`{name}` has no gradient in a single process; on rank {rank} it got one.")
            if twin is not None and mine is None:
                raise Mistake(f"the gradient of `{name}` is gone on rank {rank}: its `.grad` is None.")
            if twin is not None and mine.shape != twin.shape:
                raise Mistake(
                    f"the gradient of `{name}` has shape {tuple(mine.shape)} on rank {rank}, "
                    f"its parameter {tuple(twin.shape)}."
                )


def _one_rank_for_all(got: Sequence[Gradients], local: Sequence[Gradients]) -> None:
    for source, theirs in enumerate(local):
        if len(got) > 1 and all_agree(got, [theirs] * len(got)):
            raise Mistake(
                f"every rank has the gradients of rank {source}'s shard alone: that is a broadcast, and the other "
                "ranks' samples are lost."
            )


def _some_ranks(got: Sequence[Gradients], wanted: Gradients) -> None:
    right = [rank for rank, gradients in enumerate(got) if all_agree([gradients], [wanted])]
    if right:
        raise Mistake(
            f"only {_ranks(right)} of {len(got)} {'has' if len(right) == 1 else 'have'} the average: "
            "every rank needs it, because every rank takes the step."
        )


def _some_parameters(got: Sequence[Gradients], wanted: Gradients, local: Sequence[Gradients]) -> None:
    names = [name for name, gradient in wanted.items() if gradient is not None]
    changed = {name for gradients in got for name in disagreeing(gradients, wanted)}
    moved = {name for g, mine in zip(got, local, strict=True) for name in disagreeing(g, mine)}
    right, own = [n for n in names if n not in changed], [n for n in names if n not in moved]
    if right and own:
        raise Mistake(
            f"only some parameters are averaged: {_listed(own)} of {len(names)} "
            f"still {'has' if len(own) == 1 else 'have'} each rank's own gradient. `model.parameters()` gives all, "
            "those of the model itself and of nested modules too."
        )
    wrong = [name for name in names if name not in right]
    factor = _factor(got[0][wrong[0]], wanted[wrong[0]])
    if right and len(wrong) == 1 and factor and all(agree(g[wrong[0]], factor * wanted[wrong[0]]) for g in got):
        raise Mistake(
            f"`{wrong[0]}` alone is {_times(factor)}; the others are right. Is it reduced twice, because two layers "
            "share it?"
        )


def _constant_factor(got: Sequence[Gradients], wanted: Gradients) -> None:
    names = [name for name, gradient in wanted.items() if gradient is not None and gradient.any()]
    if not names:
        return
    factor = _factor(got[0][names[0]], wanted[names[0]])
    if factor == 0 and all(not g[name].any() for g in got for name in names):
        raise Mistake("every gradient is zero.")
    if factor != 0 and all_agree(got, [scaled(wanted, factor)] * len(got)):
        raise Mistake(f"every gradient is the right one times one constant: {_times(factor)}.")


def _factor(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Their ratio at the twin's largest entry; 0 where the twin has none."""
    largest = wanted.abs().argmax()
    divisor = wanted.flatten()[largest].item()
    return got.flatten()[largest].item() / divisor if divisor else 0.0


def _crossed(got: Sequence[Gradients], local: Sequence[Gradients]) -> None:
    """Were tensors of equal shape mixed up, because the ranks issued them in different orders?"""
    for name, mixed in got[0].items():
        peers = [n for n, g in local[0].items() if g is not None and mixed is not None and g.shape == mixed.shape]
        if not 1 < len(peers) <= 3 or len(local) > 4:
            continue
        for chosen in product(peers, repeat=len(local)):
            total = added([{"": theirs[n]} for theirs, n in zip(local, chosen, strict=True)])[""]
            if len(set(chosen)) > 1 and (agree(mixed, total) or agree(mixed, total / len(local))):
                other = next(rank for rank, n in enumerate(chosen) if n != chosen[0])
                raise Mistake(
                    f"`{name}` on rank 0 mixes rank 0's `{chosen[0]}` with rank {other}'s `{chosen[other]}`: the ranks "
                    "issue their collectives in different orders, and these are matched by order alone."
                )


def _first_difference(got: Sequence[Gradients], wanted: Gradients) -> None:
    for rank, gradients in enumerate(got):
        for name in disagreeing(gradients, wanted):
            off = _largest(gradients[name].double() - wanted[name].double())
            raise Mistake(
                f"the gradient of `{name}` on rank {rank} is not a single process's: the largest difference is "
                f"{off:.2g}, where the largest entry is {_largest(wanted[name]):.2g}."
            )


def _times(factor: float) -> str:
    if factor < 0:
        return f"{factor:.1f} times what it should be"
    return f"{factor:.1f} times too large" if factor > 1 else f"{1 / factor:.1f} times too small"


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _listed(names: Sequence[str], at_most: int = 3) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:at_most])
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most} more"
