"""04.save: the state of all ranks' slices, whole and without padding."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.checkpoints import OPTIMIZERS, TRAININGS, Checkpoint, Training, in_rows, slice_of, take_step
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake, with_article

STEPS = 2
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Saved:
    """What rank 0 returned, at once and after another step; None elsewhere."""

    checkpoint: Any
    later: Any
    touched: str  # what of the masters and moments `save` has changed; "" if nothing


def verify(answer: Any) -> str:
    for ranks in (4, 3, 2, 1):
        cases = {each.name: partial(observe, each) for each in TRAININGS}
        seen = run_cases(answer, cases, ranks, true_reduce_scatter=True)
        for training in TRAININGS:
            first = ranks == 4 and training == TRAININGS[0]
            with on_case(training.name, seen[training.name], first=first):
                judge(training, seen[training.name])
    return (
        "masters and moments of Adam and of SGD are whole, in order and without padding, within 1e-6, from 1, 2, 3 and "
        "4 ranks, also of bf16 weights and of sizes that N does not divide; the checkpoint stays as it is when "
        "training goes on."
    )


def observe(training: Training, answer: Any, mark: Mark) -> Saved:
    """In a rank: some steps on its slices, `save`, and one more step."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    slices = [slice_of(whole, rank, world_size) for whole in training.masters()]
    optimizer = OPTIMIZERS[training.optimizer](slices)
    for step in range(STEPS):
        take_step(optimizer, [slice_of(g, rank, world_size) for g in training.gradients(step)])
    buckets = training.buckets()
    for bucket, whole in zip(buckets, training.whole(STEPS)[0], strict=True):
        for p, part in zip(bucket, whole.split([p.numel() for p in bucket]), strict=True):
            p.data.copy_(part.view_as(p))
    before = copy.deepcopy(_state(slices, optimizer))
    mark("call")
    returned = answer(buckets, optimizer)
    mark("returned")
    touched = changed(before, _state(slices, optimizer))
    at_once = copy.deepcopy(returned) if rank == 0 else None
    take_step(optimizer, [slice_of(g, rank, world_size) for g in training.gradients(STEPS)])
    return Saved(at_once, returned if rank == 0 else None, touched)


def _state(slices: Sequence[torch.Tensor], optimizer: torch.optim.Optimizer) -> Checkpoint:
    """One rank's masters and moments, not copied."""
    return {"masters": list(slices), "moments": [dict(optimizer.state.get(each, {})) for each in slices]}


def judge(training: Training, seen: Sequence[Seen]) -> None:
    """In the notebook: what rank 0 returned beside a single process's state."""
    n, saved = len(seen), seen[0].value
    wanted = training.checkpoint(STEPS)
    _judge_form(saved.checkpoint, len(wanted["masters"]))
    lengths, right = ([each.numel() for each in entries["masters"]] for entries in (saved.checkpoint, wanted))
    if lengths != right and sorted(lengths) == sorted(right):
        raise Mistake(f"`masters` have {lengths} numbers, the buckets {right}: entry i is to be bucket i's.")
    for number, whole in enumerate(wanted["masters"]):
        _judge_tensor(f"the masters of bucket {number}", saved.checkpoint["masters"][number], whole, n)
        moments = saved.checkpoint["moments"][number]
        for name, value in wanted["moments"][number].items():
            if name not in moments:
                raise Mistake(
                    f"`{name}` of bucket {number} is not saved: without it training does not go on as before."
                )
            what = f"`{name}` of bucket {number}"
            if value.dim():
                _judge_which(what, moments[name], wanted, number, name)
                _judge_tensor(what, moments[name], value, n)
            elif not isinstance(moments[name], torch.Tensor):
                raise Mistake(f"{what} is {_kind(moments[name])}, not a tensor: copy it as it is.")
            elif moments[name].numel() != 1 or moments[name].item() != value.item():
                got = f"{moments[name].item():g}" if moments[name].numel() == 1 else f"{moments[name].numel()} numbers"
                raise Mistake(f"{what} is {got}; on every rank the optimizer's state has {value.item():g}. Copy it.")
    for rank, each in enumerate(seen):
        if each.value.touched:
            raise Mistake(
                f"what is saved is right, but on rank {rank} {each.value.touched} is no longer in the optimizer, or "
                "another: training is to go on, so read and do not write."
            )
    if what := changed(saved.checkpoint, saved.later):
        raise Mistake(
            f"the checkpoint changes when training goes on: {what} is the optimizer's own tensor, or a view of it. "
            "Clone."
        )


def _judge_form(checkpoint: Any, buckets: int) -> None:
    if not isinstance(checkpoint, dict):
        raise Mistake(
            f"on rank 0 your function returns {_kind(checkpoint)}; it is to return a dict with `masters` and `moments`."
        )
    for name, holds in (("masters", torch.Tensor), ("moments", dict)):
        entries = checkpoint.get(name)
        if not isinstance(entries, list | tuple) or len(entries) != buckets:
            raise Mistake(f"`{name}` of the checkpoint is to be a list with one entry for each of {buckets} buckets.")
        if not all(isinstance(each, holds) for each in entries):
            wrong = next(_kind(each) for each in entries if not isinstance(each, holds))
            right = "one flat tensor of all its numbers" if name == "masters" else "a dict of its moments by name"
            raise Mistake(f"an entry of `{name}` is {wrong}: for each bucket give {right}.")


def _judge_which(what: str, got: Any, wanted: Checkpoint, number: int, name: str) -> None:
    """Raise Mistake if it is another of the tensors that a bucket has."""
    others = {
        f"`{other}`": value for other, value in wanted["moments"][number].items() if value.dim() and other != name
    }
    for other, value in {"the masters": wanted["masters"][number], **others}.items():
        if isinstance(got, torch.Tensor) and got.numel() == value.numel() and _close(got, value):
            raise Mistake(f"{what} holds the numbers of {other}: save each tensor of the state under its own name.")


def _judge_tensor(what: str, got: Any, wanted: torch.Tensor, n: int) -> None:
    if not isinstance(got, torch.Tensor):
        raise Mistake(f"{what} are {_kind(got)}, not a tensor.")
    length = -(-len(wanted) // n)
    if got.numel() == n * length != len(wanted):
        raise Mistake(
            f"{what} have {got.numel()} numbers with the padding for {n} ranks; of another N it is another. Cut it "
            f"off: the bucket has {len(wanted)}."
        )
    if got.numel() == length != len(wanted):
        raise Mistake(f"{what} are those of rank 0's slice alone: gather the slices of all ranks.")
    if got.numel() != len(wanted):
        lost = " The last slice counts up to where the padding begins." if got.numel() < len(wanted) else ""
        raise Mistake(f"{what} have {got.numel()} numbers, the bucket has {len(wanted)}.{lost}")
    if got.dtype != torch.float32:
        raise Mistake(
            f"{what} are saved as {str(got.dtype).removeprefix('torch.')}: rounded, they lose what small steps have "
            "added up to. Save them in fp32."
        )
    if _close(got, wanted):
        return
    if _close(got, wanted.bfloat16().float()):
        raise Mistake(f"{what} are rounded to bf16: they lose what small steps have added up to.")
    for change, diagnosis in _KNOWN.items():
        if n > 1 and _close(got, in_rows(wanted, n, change)):
            raise Mistake(f"{what} {diagnosis}")
    raise Mistake(f"{what} are not what the ranks' slices hold, in the order of the ranks.")


_KNOWN = {
    lambda rows: rows.flip(0): "hold the slices in the wrong order, the last rank's first.",
    lambda rows: rows.roll(1, 0): "hold the slices in the wrong order: each stands one place too late.",
    lambda rows: rows.roll(-1, 0): "hold the slices in the wrong order: each stands one place too early.",
    lambda rows: rows[:1].expand_as(rows): "repeat rank 0's slice: those of the other ranks are lost.",
    lambda rows: torch.cat([rows[:1], 0 * rows[1:]]): "are those of rank 0's slice alone: the others are zeros.",
    lambda rows: torch.cat([rows[:-1], 0 * rows[-1:]]): "lack the last rank's slice.",
    lambda rows: rows.t(): "are interleaved: slice by slice, not number by number.",
}


def _close(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return torch.allclose(got.flatten().float(), wanted, rtol=TOLERANCE, atol=TOLERANCE)


def changed(before: Checkpoint, after: Checkpoint) -> str:
    """The first tensor in which the two differ, in words; "" if they are the same."""
    for number, moments in enumerate(before["moments"]):
        pairs = {"the master": (before["masters"][number], after["masters"][number])}
        pairs |= {f"`{name}`": (moments[name], after["moments"][number].get(name)) for name in moments}
        for what, (one, other) in pairs.items():
            if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
                same = torch.equal(one, other)
            else:
                same = type(one) is type(other) and one == other
            if not same:
                return f"{what} of bucket {number}"
    return ""


def _kind(thing: Any) -> str:
    return "None" if thing is None else with_article(type(thing).__name__)
