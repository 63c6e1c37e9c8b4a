"""Of which ranks' slices numbers are the sum, and with which factors: for sums that no known mistake explains."""

from __future__ import annotations

from collections.abc import Sequence

import torch

TOLERANCE = 1e-3


def summands(part: torch.Tensor, slices: Sequence[torch.Tensor]) -> str:
    """A sentence on `part`, of L numbers. slices: of each rank, G x L, without two that are alike."""
    if not bool(part.isfinite().all()):
        return "It has numbers that are not finite: was all of it written, and waited for?"
    columns = torch.stack([row for each in slices for row in each], dim=1).double()
    wanted = part.double()
    factors = torch.linalg.lstsq(columns, wanted[:, None]).solution[:, 0]
    if (columns @ factors - wanted).abs().max() > TOLERANCE * max(wanted.abs().max().item(), TOLERANCE):
        return "It is no sum of the ranks' slices at all: was something lost, overwritten, or not added?"
    found: dict[tuple[str, int], list[int]] = {}
    for number, factor in enumerate(factors.tolist()):
        rank, place = divmod(number, len(slices[0]))
        if abs(factor) > TOLERANCE:
            found.setdefault((f"{factor:.2f}", place), []).append(rank)
    if not found:
        return "All its numbers are zero."
    parts = [
        f"{factor} of slice {place} of rank{'s' * (len(r) > 1)} {_listed(r)}" for (factor, place), r in found.items()
    ]
    return f"It is the sum of {', and '.join(parts)}."


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
