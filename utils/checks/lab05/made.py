"""What an answer has made before anything computes: the function `step`, an optimizer, and how many numbers it steps.

Judged before all else: most of what goes wrong later goes wrong because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule

from utils.checks.lab04.made import Made
from utils.checks.lab04.numbers import judge_returned
from utils.checks.lab04.training import Trained
from utils.checks.lab05.running import is_empty, learners
from utils.checks.ranks import Mark, Seen
from utils.checks.verdict import Mistake
from utils.runtime.storages import storage_bytes


@dataclass(frozen=True)
class Start:
    """One rank.

    before     whether an optimizer was made while all parameters had their memory, which some have lost since
    optimized  numbers that the optimizers step
    past       as in `Trained`
    twice      whether `shard` read a parameter that had been sharded before
    """

    before: bool = False
    optimized: int = 0
    past: str = ""
    twice: bool = False


def observe_start(build: Callable[[], nn.Module], call: Callable[..., Any], answer: Any, mark: Mark) -> Start:
    """In a rank: `call(answer, model, make_optimizer)`, and no more."""
    model, made, before = build(), Made("SGD"), []

    def full() -> bool:
        return all(storage_bytes(p.untyped_storage()) >= p.nbytes for p in model.parameters())

    def make(tensors: Any) -> torch.optim.Optimizer:
        before.append(full())
        return made.make(tensors)

    mark("prepare")
    with made.others_noted():
        try:
            call(answer, model, make)
        except RuntimeError as error:
            if not is_empty(error) or learners(error) != "shard":
                raise
            return Start(twice=True)
    past = next((type(m).__name__ for m in model.modules() if isinstance(m, FSDPModule)), made.past)
    stepped = [p for each in made.optimizers for group in each.param_groups for p in group["params"]]
    return Start(any(before) and not full(), sum(t.numel() for t in stepped), past)


def judge_start(seen: Sequence[Seen], groups: Sequence[Sequence[nn.Parameter]]) -> None:
    """Raise Mistake if an optimizer has other numbers than this rank's shards. groups: of the parameters that train."""
    n = len(seen)
    whole = sum(p.numel() for group in groups for p in group)
    rounded = n * sum(len(group) for group in groups)  # each shard may be rounded up, of whatever it is cut
    total = sum(each.value.optimized for each in seen)
    for rank, each in enumerate(seen):
        start: Start = each.value
        if start.twice:
            raise Mistake(
                "a parameter is sharded twice: it has no memory any more when `shard` reads it again. A tied weight, "
                "or a nested unit's, belongs to one group."
            )
        if start.past:
            judge_returned([Trained(past=start.past)])
        if not start.optimized:
            return  # made later, or never: the exam sees
        if start.before and start.optimized >= whole:
            raise Mistake(
                "the optimizer is made before sharding: it has the weights as they were then, whole, and what it steps "
                "is not what is gathered: the model's weights never move. Shard first, then make it on masters of the "
                "shards."
            )
        if n > 1 and start.optimized >= whole:
            raise Mistake(
                f"the optimizer of rank {rank} has {start.optimized} numbers, as many as the model: full parameters, "
                f"and so full masters and moments on each of {n} ranks. Make it on masters of this rank's shards."
            )
    if total > whole + rounded:
        raise Mistake(
            f"the ranks' optimizers have {total} numbers, and {whole} train: a tied weight, or a nested unit's, is "
            "sharded twice. Each parameter belongs to one unit, or to the root."
        )
    if total < whole:
        raise Mistake(
            f"the ranks' optimizers have {total} numbers, and {whole} train: what belongs to no unit is to be sharded, "
            "reduced and stepped too."
        )
