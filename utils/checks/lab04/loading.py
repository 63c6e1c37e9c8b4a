"""04.load: this rank's slices of a checkpoint that any number of ranks has written."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.checkpoints import (
    OPTIMIZERS,
    TRAININGS,
    Training,
    in_rows,
    slice_of,
    take_step,
)
from utils.checks.lab04.saving import STEPS, TOLERANCE, changed
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake, with_article


@dataclass(frozen=True)
class Loaded:
    """One rank: its masters and moments after `load`, the parameters' numbers by bucket, and the masters two steps on.

    trouble   what the steps after it raised, if they did
    in_place  whether each parameter still lies where it lay
    own       whether the optimizer's slices are the tensors that it had
    written   which tensor of the checkpoint `load`, or one of two steps after it, has written to; "" if none
    """

    masters: tuple[torch.Tensor, ...]
    moments: tuple[dict[str, Any], ...]
    weights: tuple[torch.Tensor, ...]
    later: tuple[torch.Tensor, ...]
    trouble: str
    in_place: bool
    own: bool
    written: str


def verify(answer: Any) -> str:
    for ranks in (2, 3, 1):
        cases = {each.name: partial(observe, each) for each in TRAININGS}
        seen = run_cases(answer, cases, ranks)
        for training in TRAININGS:
            first = ranks == 2 and training == TRAININGS[0]
            with on_case(training.name, seen[training.name], first=first):
                judge(training, seen[training.name])
    return (
        "a checkpoint of Adam and of SGD goes on with 1, 2 and 3 ranks: slices, moments, step counters and weights are "
        "right within 1e-6, so are the masters two steps later; also in bf16 and with sizes that N does not divide; "
        "the checkpoint itself stays as it is."
    )


def observe(training: Training, answer: Any, mark: Mark) -> Loaded:
    """In a rank: a fresh model and a fresh optimizer, `load`, and two more steps."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    buckets, slices = training.buckets(), []
    for bucket in buckets:  # as ZeRO-1 holds them: views of one buffer, and in fp32 the slice is the master
        flat = torch.cat([p.detach().flatten() for p in bucket])
        flat = torch.cat([flat, flat.new_zeros(-len(flat) % world_size)])
        for p, part in zip(bucket, _parts(flat, bucket), strict=True):
            p.data = part
        slices.append(flat.chunk(world_size)[rank].float())
    optimizer = OPTIMIZERS[training.optimizer](slices)
    places = [p.data_ptr() for bucket in buckets for p in bucket]
    checkpoint = training.checkpoint(STEPS)
    before = copy.deepcopy(checkpoint)
    mark("call")
    answer(checkpoint, buckets, optimizer)
    mark("returned")
    masters = [each.detach().clone() for each in optimizer.param_groups[0]["params"]]
    moments = [copy.deepcopy(dict(optimizer.state[each])) for each in optimizer.param_groups[0]["params"]]
    weights = [torch.cat([p.detach().flatten() for p in bucket]) for bucket in buckets]
    in_place = places == [p.data_ptr() for bucket in buckets for p in bucket]
    own = all(a is b for a, b in zip(slices, optimizer.param_groups[0]["params"], strict=False))
    trouble = ""
    for step in (STEPS, STEPS + 1):
        try:  # the state is judged first, so that its mistake is named
            take_step(optimizer, [slice_of(g, rank, world_size) for g in training.gradients(step)])
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            break
    later = [each.detach().clone() for each in optimizer.param_groups[0]["params"]]
    written = changed(before, checkpoint)
    return Loaded(tuple(masters), tuple(moments), tuple(weights), tuple(later), trouble, in_place, own, written)


def _parts(flat: torch.Tensor, bucket: Sequence[nn.Parameter]) -> list[torch.Tensor]:
    numels = [p.numel() for p in bucket]
    return [part.view_as(p) for part, p in zip(flat[: sum(numels)].split(numels), bucket, strict=True)]


def judge(training: Training, seen: Sequence[Seen]) -> None:
    """In the notebook: each rank's slices and weights beside the checkpoint."""
    n, checkpoint = len(seen), training.checkpoint(STEPS)
    later, _ = training.whole(STEPS + 2)
    fresh = [torch.cat([p.detach().flatten() for p in bucket]) for bucket in training.buckets()]
    for rank, each in enumerate(seen):
        loaded: Loaded = each.value
        if len(loaded.masters) != len(checkpoint["masters"]):
            raise Mistake(f"on rank {rank} the optimizer has {len(loaded.masters)} slices left, not those it had.")
        for number, whole in enumerate(checkpoint["masters"]):
            what = f"rank {rank}'s masters of bucket {number}"
            _judge_slice(what, loaded.masters[number], whole, fresh[number].float(), rank, n)
            moments = checkpoint["moments"][number]
            for name in moments:
                _judge_moment(f"`{name}` of bucket {number}", name, loaded.moments[number], moments, rank, n)
            _judge_weights(number, loaded.weights[number], whole.to(training.dtype), fresh[number], rank, n)
        if not loaded.own:
            raise Mistake(
                f"on rank {rank} the optimizer has got other tensors for its slices: `zero1` and `zero2` still have "
                "those that it had, and hand their gradients to them. Write in place: `slice.copy_(…)`."
            )
        if not loaded.in_place:
            raise Mistake(
                f"on rank {rank} a parameter has become another tensor: it was a view of a flat buffer, and what is "
                "gathered into that would no longer reach it. Write in place: `p.data.copy_(…)`."
            )
        if loaded.trouble:
            raise Mistake(f"the optimizer's next step on rank {rank} raises {loaded.trouble}")
        if loaded.written:
            raise Mistake(
                f"the checkpoint is written to, by `load` or by the steps after it: {loaded.written} is its own tensor "
                "or a view of it. Clone what you take, the step counter too."
            )
        for number, whole in enumerate(later):
            if not _close(loaded.later[number], slice_of(whole, rank, n)):
                raise Mistake(f"two steps later rank {rank}'s masters of bucket {number} are not a single process's.")


def _judge_slice(what: str, got: torch.Tensor, whole: torch.Tensor, fresh: torch.Tensor, rank: int, n: int) -> None:
    wanted = slice_of(whole, rank, n)
    if got.shape == wanted.shape and _close(got, wanted):
        return
    if got.shape != wanted.shape:
        raise Mistake(f"{what} have {got.numel()} numbers, its slice on {n} ranks has {wanted.numel()}.")
    if _close(got, slice_of(fresh, rank, n)):
        raise Mistake(f"{what} are still those of the fresh model: they are not loaded.")
    if _close(got, wanted.bfloat16().float()):
        raise Mistake(f"{what} are rounded to bf16: load the masters in fp32, not by way of the weights.")
    _other_slice(what, got, whole, rank, n)
    numbers = min(len(got), max(0, len(whole) - rank * len(got)))
    if _close(got[:numbers], wanted[:numbers]):
        raise Mistake(f"{what} are right up to the padding, which is not zero.")
    raise Mistake(f"{what} are not its slice of the checkpoint's.")


def _other_slice(what: str, got: torch.Tensor, whole: torch.Tensor, rank: int, n: int) -> None:
    for other in range(n):
        if other != rank and _close(got, slice_of(whole, other, n)):
            raise Mistake(f"{what} are those of rank {other}'s slice: slice r is rank r's.")
    for of in (2, 3, 4):  # the number of ranks of another run
        length = -(-len(whole) // of)
        part = whole[rank * length : rank * length + len(got)]
        if of != n and len(part) and _close(got[: len(part)], part):
            raise Mistake(f"{what} begin where a slice of {of} ranks begins; here there are {n}.")


def _judge_moment(
    what: str, name: str, state: dict[str, Any], moments: dict[str, torch.Tensor], rank: int, n: int
) -> None:
    value = moments[name]
    if name not in state:
        raise Mistake(
            f"{what} is not loaded on rank {rank}: the optimizer begins anew, and its next steps are others."
            if not state
            else f"{what} is not loaded on rank {rank}."
        )
    got = state[name]
    if not isinstance(got, torch.Tensor):
        kind = "None" if got is None else with_article(type(got).__name__)
        raise Mistake(f"{what} is {kind} on rank {rank}, not a tensor.")
    if not value.dim():
        if got.numel() != 1 or float(got) != value.item():
            raise Mistake(f"{what} is {float(got):g} on rank {rank}; the checkpoint has {value.item():g}.")
        return
    wanted = slice_of(value, rank, n)
    if got.shape == value.shape != wanted.shape:
        raise Mistake(f"{what} is whole on rank {rank}: a rank keeps the moments of its slice alone.")
    if got.shape != wanted.shape:
        raise Mistake(f"{what} has {got.numel()} numbers on rank {rank}, its slice has {wanted.numel()}.")
    if not _close(got, wanted):
        for other, numbers in moments.items():
            if other != name and numbers.dim() and _close(got, slice_of(numbers, rank, n)):
                raise Mistake(
                    f"{what} on rank {rank} is its slice of `{other}`: each moment is loaded by its own name."
                )
        if _close(got, wanted.bfloat16()):
            raise Mistake(f"{what} on rank {rank} is rounded to bf16: load the moments in fp32, as they are saved.")
        _other_slice(f"rank {rank}'s numbers of {what}", got, value, rank, n)
        raise Mistake(f"{what} on rank {rank} is not its slice of the checkpoint's.")


def _judge_weights(
    number: int, got: torch.Tensor, wanted: torch.Tensor, fresh: torch.Tensor, rank: int, n: int
) -> None:
    if got.dtype != wanted.dtype:
        types = (str(each.dtype).removeprefix("torch.") for each in (got, wanted))
        raise Mistake(
            f"on rank {rank} the parameters of bucket {number} have become {' where they were '.join(types)}: write "
            "into them, `p.data.copy_(…)`, which rounds."
        )
    if _close(got, wanted):
        return
    if got.shape != wanted.shape:
        raise Mistake(
            f"on rank {rank} the parameters of bucket {number} have become {got.numel()} numbers; they have "
            f"{wanted.numel()}. Cut the bucket's numbers by `p.numel()`, in order."
        )
    if torch.equal(got, fresh):
        raise Mistake(
            f"the parameters of bucket {number} are still the fresh model's on rank {rank}: the next forward uses them."
        )
    if n > 1:
        mixed = torch.stack([got.float(), wanted.float()])
        own = in_rows(torch.ones(len(got)), n, lambda rows: _one_row(rows, rank)).bool()
        if _close(mixed[0][own], mixed[1][own]):
            raise Mistake(
                f"of the parameters of bucket {number} rank {rank} has loaded its own slice alone: each rank computes "
                "with all of them."
            )
    raise Mistake(f"the parameters of bucket {number} on rank {rank} are not the checkpoint's masters.")


def _one_row(rows: torch.Tensor, rank: int) -> torch.Tensor:
    alone = torch.zeros_like(rows)
    alone[rank] = 1
    return alone


def _close(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return got.shape == wanted.shape and torch.allclose(got.float(), wanted.float(), rtol=TOLERANCE, atol=TOLERANCE)
