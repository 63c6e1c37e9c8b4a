"""01.broadcast_model: every rank starts from rank 0's weights and buffers, in the tensors it already has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from utils.checks.lab01.cases import cost, on_case
from utils.checks.lab01.traps import BUFFERS, FROZEN, NESTED, PLAIN, SIZES, TIED, Trap
from utils.checks.ranks import Mark, Seen, hold_back, on_a_copy, run_cases
from utils.checks.verdict import Mistake

TRAPS = (TIED, FROZEN, BUFFERS, NESTED, SIZES)

State = Mapping[str, torch.Tensor]  # parameters (a tied one once) and buffers by name


@dataclass(frozen=True)
class After:
    """One rank's model before and after the answer, and what became of its parameters."""

    before: State
    state: State
    buffers: frozenset[str]
    unsaved: frozenset[str]  # buffers that `state_dict()` leaves out
    frozen: frozenset[str]
    replaced: tuple[str, ...]  # other Parameter objects, or other names than before
    thawed: tuple[str, ...]  # requires_grad changed
    moved: tuple[str, ...]  # parameters and buffers that lie in other memory than before


def verify(answer: Any) -> str:
    seen = _run(answer, (PLAIN,), 3)[PLAIN.name]
    with on_case(PLAIN.name, seen, first=True):
        judge(seen)
    for ranks in (2, 4):
        cases = _run(answer, TRAPS, ranks)
        for trap in TRAPS:
            with on_case(trap.name, cases[trap.name]):
                judge(cases[trap.name])
    size = sum(t.numel() * t.element_size() for t in PLAIN.build().parameters())
    return (
        "every rank holds rank 0's weights and buffers, bit for bit, in its own tensors, on 2, 3 and 4 ranks, also "
        "with tied weights, frozen parameters, BatchNorm's buffers, integers above 2**24, float64, a buffer that is "
        "not persistent, nested modules, one large and many tiny tensors. "
        f"Cost on 3 ranks, by the ring's rules: {cost(seen, size)}."
    )


def _run(answer: Any, traps: Sequence[Trap], ranks: int) -> dict[str, list[Seen]]:
    try:
        return run_cases(answer, {trap.name: partial(observe, trap) for trap in traps}, ranks)
    except Mistake as mistake:
        if "different roots" in str(mistake):
            raise Mistake(
                "each rank broadcasts from a rank of its own: `src` names the one rank that sends, and must be 0 on "
                f"all ranks, also on those that receive; {mistake}"
            ) from None
        raise


def observe(trap: Trap, answer: Any, mark: Mark) -> After:
    """In a rank: a model of its own, as if every rank had drawn its own weights; then the answer."""
    model = trap.build(seed=100 + dist.get_rank())
    before = _copy(model)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    places = _places(model)
    trainable = {name: p.requires_grad for name, p in parameters.items()}
    if trap == PLAIN:
        hold_back(0)
    answer(model)
    mark("returned")
    now = dict(model.named_parameters(remove_duplicate=False))
    buffers = frozenset(name for name, _ in model.named_buffers())
    return After(
        before,
        _copy(model),
        buffers,
        buffers - model.state_dict().keys(),
        frozenset(name for name, needs in trainable.items() if not needs),
        tuple(name for name in {**parameters, **now} if now.get(name) is not parameters.get(name)),
        tuple(name for name, p in now.items() if trainable.get(name) != p.requires_grad),
        tuple(name for name, at in _places(model).items() if places.get(name) != at),
    )


def _places(model: nn.Module) -> dict[str, int]:
    """Where each parameter and buffer lies in memory."""
    return {name: t.data_ptr() for name, t in (*model.named_parameters(), *model.named_buffers())}


def judge(seen: Sequence[Seen]) -> None:
    """In the notebook: every rank's tensors beside what rank 0 had."""
    after: list[After] = [each.value for each in seen]
    wanted = after[0].before
    _whole(after, wanted, on_a_copy(seen, "tensor", "tensor.copy_(out)"))
    for rank, each in enumerate(after):
        gone = [name for name in wanted if name not in each.state]
        if gone:
            raise Mistake(f"`{gone[0]}` is gone from the model on rank {rank}.")
        wrong = [name for name in wanted if not each.state[name].equal(wanted[name])]
        if wrong:
            _some(rank, each, wrong, wanted)
        if each.replaced:
            raise Mistake(
                f"`{each.replaced[0]}` is another Parameter object than before on rank {rank}: an optimizer made "
                "earlier would go on changing the old one. Write into the tensor instead."
            )
        if each.moved:
            raise Mistake(
                f"`{each.moved[0]}` lies in other memory than before on rank {rank}: `t.data = …`, or another buffer "
                "under the same name, is not the rank's own tensor, and whoever holds its memory (a view of it, a flat "
                "copy of all parameters) goes on with the old numbers. Write into the tensor, as in `t.copy_(new)`."
            )
        if each.thawed:
            raise Mistake(f"`{each.thawed[0]}`.requires_grad changed on rank {rank}.")


def _whole(after: Sequence[After], wanted: State, copied: str | None) -> None:
    """Mistakes that show on all ranks at once; `copied` tells of collectives that ran on a copy."""
    ranks = len(after)
    if _same(after, lambda name, rank: after[rank].before[name]):
        raise Mistake(copied or "nothing happened: every rank still has its own weights.")
    for source in range(1, ranks):
        if _same(after, lambda name, rank, source=source: after[source].before[name]):
            raise Mistake(f"every rank has the weights of rank {source}, not of rank 0.")
    floats = [name for name, tensor in wanted.items() if tensor.is_floating_point()]
    means = {name: sum(each.before[name] for each in after) / ranks for name in floats}
    if all(_close(each.state[name], means[name]) for each in after for name in floats):
        raise Mistake("the weights are averaged over the ranks; what is asked for is rank 0's on every rank.")
    sums = {name: sum(each.before[name] for each in after) for name in floats}
    if all(_close(each.state[name], sums[name]) for each in after for name in floats):
        raise Mistake("the weights are summed over the ranks; what is asked for is rank 0's on every rank.")
    first = after[0].state
    rounded = [name for name in wanted if name in first and not first[name].equal(wanted[name])]
    if rounded and all(name in first and _nearly(first[name], wanted[name]) for name in wanted):
        raise Mistake(
            f"rank 0's own weights changed by rounding: {_types(wanted, rounded)} were sent in a smaller type than "
            "their own."
        )
    if all(name in first and not _close(first[name], wanted[name]) for name in floats):
        agreed = "all ranks agree, but on other numbers" if _same(after, lambda name, _: first[name]) else "see there"
        raise Mistake(
            f"rank 0's own weights changed ({agreed}): they are to be sent, not drawn anew, and rank 0 keeps its own."
        )


def _same(after: Sequence[After], expected: Callable[[str, int], torch.Tensor]) -> bool:
    return all(
        name in each.state and each.state[name].equal(expected(name, rank))
        for rank, each in enumerate(after)
        for name in each.before
    )


def _close(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return got.shape == wanted.shape and torch.allclose(got, wanted, rtol=1e-4, atol=1e-6)


def _nearly(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Equal but for the rounding of a half-precision type."""
    return got.shape == wanted.shape and torch.allclose(got.float(), wanted.float(), rtol=0.02, atol=1e-3)


def _some(rank: int, each: After, wrong: Sequence[str], wanted: State) -> None:
    """Mistakes that leave some tensors right."""
    own = "still its own" if all(each.state[name].equal(each.before[name]) for name in wrong) else "not rank 0's"
    names = f"`{wrong[0]}`" + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else "")
    if all(_nearly(each.state[name], wanted[name]) for name in wrong):
        raise Mistake(
            f"on rank {rank} {names} {_are(wrong)} rank 0's but for rounding: {_types(wanted, wrong)} were sent in a "
            "smaller type than their own."
        )
    if set(wrong) <= each.unsaved:
        raise Mistake(
            f"the buffers are forgotten that are registered with `persistent=False`: on rank {rank} {names} "
            f"{_are(wrong)} {own}. `state_dict()` leaves them out, `model.buffers()` gives all."
        )
    if set(wrong) <= each.buffers:
        raise Mistake(
            f"the buffers are forgotten: on rank {rank} {names} {_are(wrong)} {own}. BatchNorm's running statistics "
            "belong to the model as its weights do."
        )
    if set(wrong) <= each.frozen:
        raise Mistake(
            f"the frozen parameters are forgotten: on rank {rank} {names} {_are(wrong)} {own}. They do not train, but "
            "the forward pass uses them."
        )
    raise Mistake(
        f"on rank {rank} {names} {_are(wrong)} {own}. `model.parameters()` and `model.buffers()` give all, those of "
        "the model itself and of nested modules too."
    )


def _types(wanted: State, names: Sequence[str]) -> str:
    """ "`samples_seen` (int64) and `exact` (float64)"."""
    return " and ".join(f"`{name}` ({str(wanted[name].dtype).removeprefix('torch.')})" for name in names[:2])


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _copy(model: nn.Module) -> dict[str, torch.Tensor]:
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in tensors}
