"""05.forward: units gathered for their forward and freed after it, without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.models import SIZES, TIED, Model
from utils.checks.lab05.exam import orders, wrong_order
from utils.checks.lab05.life import Life
from utils.checks.lab05.lifecycle import judge_life
from utils.checks.lab05.models import LIFE, units
from utils.checks.lab05.running import run
from utils.checks.lab05.watching import Watch
from utils.checks.ranks import Mark, Seen
from utils.checks.verdict import Mistake
from utils.runtime.held import Held

CALLS = 2
TOLERANCE = 1e-6
RUNS = ((4, LIFE), (2, TIED), (3, SIZES))


@dataclass(frozen=True)
class Inference(Life):
    """One rank. held: bytes of all tensors when two forwards are over; by_torch: whether `fully_shard` was called."""

    outputs: tuple[torch.Tensor, ...] = ()
    held: int = 0
    by_torch: bool = False


def verify(answer: Any) -> str:
    for ranks, model in RUNS:
        seen = run(answer, {model.name: partial(observe, model)}, ranks)[model.name]
        with on_case(model.name, seen, first=model == LIFE):
            judge(model, seen)
    return (
        "on 2, 3 and 4 ranks the outputs of two forwards are the whole model's within 1e-6, also with tied weights and "
        "sizes that N does not divide; while a unit computes it is gathered, once, and no other but the next; before, "
        "between and after, each rank holds its shards alone, within 1 %."
    )


def observe(model: Model, answer: Any, mark: Mark) -> Inference:
    """In a rank: two forwards of different inputs."""
    built, rank, world_size = model.build(), dist.get_rank(), dist.get_world_size()
    given = units(model, built)
    batches = [model.batches(world_size, call)[rank][0] for call in range(CALLS)]
    outputs = []
    with Held(built) as held, torch.no_grad():
        watch = Watch(given, mark)
        mark("prepare")
        answer(given)
        if any(isinstance(module, FSDPModule) for module in built.modules()):
            return Inference(by_torch=True)
        watch.end()
        for number, inputs in enumerate(batches):
            watch.step = number
            watch.begin("evaluation")
            outputs.append(built(inputs))
            watch.end()
        mark("after")
        outputs = [output.clone() for output in outputs]
        own = sum(output.nbytes for output in outputs)
        left = held.at_rest() - own if model == LIFE else 0
    return Inference(tuple(watch.moments), outputs=tuple(outputs), held=left)


def judge(model: Model, seen: Sequence[Seen]) -> None:
    """In the notebook: raise Mistake, naming the first thing that is wrong."""
    world_size = len(seen)
    whole = model.build()
    for rank, each in enumerate(seen):
        if each.value.by_torch:
            raise Mistake("torch's fully_shard does the work: build it from `shard` and hooks.")
        for call, output in enumerate(each.value.outputs):
            with torch.no_grad():
                wanted = whole(model.batches(world_size, call)[rank][0])
            off = (output - wanted).abs().max().item() / wanted.abs().max().item()
            if not off <= TOLERANCE:
                _judge_order(model, model.batches(world_size, call)[rank][0], output, world_size)
                raise Mistake(
                    f"forward {call} on rank {rank} of {world_size} does not give what the whole model gives (off by "
                    f"{off:.1g} of its largest number): is every unit gathered, all slices in order, when it computes?"
                )
    if model == LIFE:
        judge_life(seen, ahead=False)
        _judge_held(seen)


def _judge_order(model: Model, inputs: torch.Tensor, output: torch.Tensor, ranks: int) -> None:
    """Raise Mistake if the outputs are those of units whose slices were gathered in another order."""
    for words, order in orders(ranks):
        other = model.build()
        with torch.no_grad():
            for unit in units(model, other):
                parameters = list(unit.parameters())
                numbers = torch.cat([p.flatten() for p in parameters])
                padded = torch.cat([numbers, numbers.new_zeros(-len(numbers) % ranks)]).view(ranks, -1)
                turned = padded[order].flatten()[: len(numbers)].split([p.numel() for p in parameters])
                for p, part in zip(parameters, turned, strict=True):
                    p.copy_(part.view_as(p))
            wanted = other(inputs)
        if (output - wanted).abs().max() <= TOLERANCE * wanted.abs().max():
            raise Mistake(wrong_order(words))


def _judge_held(seen: Sequence[Seen]) -> None:
    whole = sum(p.nbytes for p in LIFE.build().parameters())
    for rank, each in enumerate(seen):
        if each.value.held > whole / len(seen) * 1.01:
            raise Mistake(
                f"after two forwards rank {rank} of {len(seen)} holds {each.value.held / whole:.2f} S (S: the bytes of "
                f"all weights), where its shards are {1 / len(seen):.2f} S: something keeps the gathered weights alive "
                "under another name. Empty the storage itself."
            )
