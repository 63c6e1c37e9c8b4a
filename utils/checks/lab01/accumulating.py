"""01.accumulate and 01.ddp_accumulate: k micro-batches, one communication, one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from utils.checks.lab01.cases import on_case, reduced_once
from utils.checks.lab01.gradients import Gradients, Suspect, added, compare, scaled
from utils.checks.lab01.traps import (
    FROZEN,
    OTHER_LOSSES,
    PER_RANK,
    PLAIN,
    SIZES,
    TIED,
    UNUSED,
    Batch,
    Trap,
    lopsided,
    shares,
)
from utils.checks.lab01.twin import (
    Pass,
    Taken,
    Twin,
    Watch,
    make_optimizer,
    one_step_each,
    own_samples_alone,
    same_weights,
)
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake

CALLS = (3, 1, 4)  # micro-batches in each call of the answer; first 3 on 4 ranks, so that no two factors coincide
SILENT = " Is `average_gradients` called, after the last backward?"
SILENT_DDP = (
    " Is synchronising switched on too late, after the last micro-batch's forward and backward, or is the forward "
    "called on `ddp_model.module`?"
)

Wrap = Callable[[nn.Module, Watch], nn.Module]


def verify(answer: Any) -> str:
    """With gradients that the answer itself averages."""
    _verify(answer, _as_it_is, (TIED, FROZEN, UNUSED, SIZES))
    return (
        "the step's gradients are the mean over all micro-batches and ranks, within 1e-5 of a single process's, for 1, "
        "3 and 4 micro-batches on 2 and 4 ranks, and 4 micro-batches cost the bytes of one; also with tied weights, "
        "frozen parameters, an unused layer."
    )


def verify_ddp(answer: Any) -> str:
    """With a model that torch's DistributedDataParallel has wrapped."""
    _verify(answer, _in_ddp, (TIED, FROZEN, SIZES))
    return (
        "with torch's DDP the step's gradients are the mean over all micro-batches and ranks, within 1e-5 of a single "
        "process's, for 1, 3 and 4 micro-batches on 2 and 4 ranks, and DDP all-reduces once a step; also with tied "
        "weights and frozen parameters."
    )


def _verify(answer: Any, wrap: Wrap, traps: Sequence[Trap]) -> None:
    seen = run_cases(answer, {PLAIN.name: partial(observe, PLAIN, wrap)}, 4)[PLAIN.name]
    with on_case(PLAIN.name, seen, first=True):
        judge(PLAIN, seen, wrap is _in_ddp)
    cases = run_cases(answer, {trap.name: partial(observe, trap, wrap) for trap in traps}, 2)
    for trap in traps:
        with on_case(trap.name, cases[trap.name]):
            judge(trap, cases[trap.name], wrap is _in_ddp)


def _as_it_is(model: nn.Module, watch: Watch) -> nn.Module:
    return model


def _in_ddp(model: nn.Module, watch: Watch) -> nn.Module:
    ddp_model = DistributedDataParallel(model)
    ddp_model.register_comm_hook(watch, _noted)
    return ddp_model


def _noted(watch: Watch, bucket):  # noqa: ANN001, ANN202 (torch refuses a hook whose annotations are text)
    """What DDP does by itself, with a note of how many bytes."""
    watch.reduced[-1] += bucket.buffer().numel() * bucket.buffer().element_size()
    return allreduce_hook(dist.group.WORLD, bucket)


def micro_batches(ranks: int, call: int) -> list[list[Batch]]:
    """By rank, this call's micro-batches."""
    by_place = [shares(ranks, seed=10 * call + place) for place in range(CALLS[call])]
    return [[batches[rank] for batches in by_place] for rank in range(ranks)]


def observe(trap: Trap, wrap: Wrap, answer: Any, mark: Mark) -> Taken:
    """In a rank: three steps, of 1, 3 and 4 micro-batches."""
    model = trap.build()
    watch = Watch(model, make_optimizer(model), mark)
    wrapped = wrap(model, watch)
    for call in range(len(CALLS)):
        mine = micro_batches(dist.get_world_size(), call)[dist.get_rank()]
        watch.call(answer, wrapped, watch.optimizer, lopsided, mine)
    return watch.taken()


def judge(trap: Trap, seen: Sequence[Seen], ddp: bool = False, silent: str = SILENT) -> None:
    """In the notebook: gradients at each step beside the twin's, then what each call communicated and kept alive."""
    ranks, twin = len(seen), Twin(trap)
    taken: list[Taken] = [each.value for each in seen]
    before: Gradients | None = None
    for call, k in enumerate(CALLS):
        batches = micro_batches(ranks, call)
        one_step_each(taken, call)
        parts = [[twin.gradients(batch) for batch in mine] for mine in batches]
        local = [scaled(added(mine), 1 / k) for mine in parts]
        whole = scaled(added(local), 1 / ranks)
        compare(
            [each.steps[call][0] for each in taken],
            whole,
            local,
            _factors(ranks, k),
            [*_suspects(parts, whole, before, k), *_other_losses(twin, batches, k)],
            _untouched(seen[0], call, k, SILENT_DDP if ddp else silent),
            trap.frozen,
        )
        own_samples_alone(taken, call, [sum(len(inputs) for inputs, _ in mine) for mine in batches])
        before = whole
        twin.step([batch for mine in batches for batch in mine])
        same_weights(taken, call, twin)
    if ddp:
        size = sum(g.numel() * g.element_size() for g in whole.values() if g is not None)
        _judge_reducer(seen, size)
    _judge_bytes(seen, ddp)
    if trap == PLAIN and not ddp:
        reduced_once([seen[0].of_call(call) for call in range(len(CALLS))], whole)
    for each in taken:
        for call, k in enumerate(CALLS):
            _judge_passes(each.passes[call], k)


def _factors(ranks: int, k: int) -> dict[float, str]:
    over_ranks = {
        ranks: "the gradients are summed over the ranks, not averaged",
        1 / ranks: "the mean over the ranks is divided by the number of ranks once more",
    }
    hard_coded = {
        k / n: f"each loss is divided by {n}, where {micro(k)} came: `len(micro_batches)` counts them"
        for n in (2, 3, 4, 8)
        if n != k
    }
    if k == 1:
        return hard_coded | over_ranks
    over_both = {
        k: "the micro-batches are summed, not averaged: divide each loss by their number",
        1 / k: "the gradients are divided by the number of micro-batches twice",
        ranks * k: "the gradients are summed over ranks and micro-batches, not averaged",
    }
    return hard_coded | over_both | over_ranks


def _suspects(parts: list[list[Gradients]], whole: Gradients, before: Gradients | None, k: int) -> list[Suspect]:
    """`parts` by rank and micro-batch."""
    ranks, suspects = len(parts), []
    if k > 1:
        for divisor, also in ((1, ""), (k, f", and are divided by {k}")):
            last = scaled(added(mine[-1] for mine in parts), 1 / ranks / divisor)
            suspects.append(
                Suspect(
                    [last] * ranks,
                    f"only the last micro-batch's gradients are left{also}: `zero_grad` belongs before the loop "
                    "(or does `backward` stand outside the loop?).",
                )
            )
            early = scaled(added(part for mine in parts for part in mine[:-1]), 1 / ranks / divisor)
            late = [added([early, scaled(mine[-1], 1 / divisor)]) for mine in parts]
            first = scaled(added(mine[0] for mine in parts), 1 / ranks / divisor)
            kept = f"only the first micro-batch's gradients are averaged and kept{also}: communicate in the last one's."
            suspects.append(Suspect([first] * ranks, kept))
            rest = [added([first, scaled(added(mine[1:]), 1 / divisor)]) for mine in parts]
            suspects.append(
                Suspect(
                    rest,
                    "only the first micro-batch is averaged, and those after it are added on each rank alone: "
                    "communicate with the last one.",
                )
            )
            suspects.append(
                Suspect(late, "the last micro-batch is not averaged: its gradients are added after the communication.")
            )
        suspects.append(
            Suspect([added(mine) for mine in parts], "nothing is averaged, neither over ranks nor over micro-batches.")
        )
    if before is not None:
        suspects.append(
            Suspect(
                [added([before, whole])] * ranks,
                "from the second step on, the gradients of the step before are still in the sum: `zero_grad` is "
                "missing.",
            )
        )
    return suspects


def _other_losses(twin: Twin, batches: list[list[Batch]], k: int) -> list[Suspect]:
    ranks = len(batches)
    return [
        Suspect(
            [scaled(added(twin.gradients(batch, loss) for mine in batches for batch in mine), 1 / ranks / k)] * ranks,
            diagnosis,
        )
        for loss, diagnosis in OTHER_LOSSES.items()
    ]


def micro(k: int) -> str:
    """ "3 micro-batches", "1 micro-batch"."""
    return f"{k} micro-batch{'es' if k > 1 else ''}"


def _untouched(seen: Seen, call: int, k: int, silent: str) -> str:
    issued = sum(op.bytes for op in seen.after(f"call {call}"))
    late = sum(op.bytes for op in seen.after(f"step {call}"))
    if late:
        return f"the ranks communicate after the step: at `optimizer.step()` each has its own gradients of {micro(k)}."
    if issued:
        return f"the ranks communicate {issued} B, but at `optimizer.step()` each has its own gradients of {micro(k)}."
    return f"the ranks never communicate: with {micro(k)} each steps with its own gradients.{silent}"


def _judge_bytes(seen: Sequence[Seen], ddp: bool) -> None:
    """k micro-batches must cost what one costs, in the same answer: no style of communication is preferred."""
    sent = [sum(op.ring_bytes for op in seen[0].of_call(call)) for call in range(len(CALLS))]
    one = sent[CALLS.index(1)]
    for k, bytes_sent in zip(CALLS, sent, strict=True):
        if bytes_sent > 1.5 * one:
            hint = " Do both the forward and the backward of all but the last stand inside `no_sync`?" if ddp else ""
            raise Mistake(
                f"the gradients are right, but {k} micro-batches cost {bytes_sent / one:.1f} times the bytes of "
                f"one: communicate once a step, not once a micro-batch.{hint}"
            )


def _judge_reducer(seen: Sequence[Seen], size: int) -> None:
    """The gradients, of `size` bytes, must have been reduced by DDP itself, and not by the answer as well."""
    for each in seen:
        for call, k in enumerate(CALLS):
            by_ddp = each.value.reduced[call]
            if by_ddp < size:
                raise Mistake(
                    f"the gradients are right, but not by DDP: with {micro(k)} its own reduction never ran. Call "
                    "`ddp_model(inputs)`, the last time outside `no_sync`, and let its backward do the averaging."
                )
            own = sum(op.bytes for op in each.of_call(call) if op.kind not in ("broadcast", "barrier")) - by_ddp
            if own >= size:
                raise Mistake(
                    f"the gradients are right, but they are reduced twice: DDP has all-reduced {by_ddp} B, and your "
                    f"function communicates {own} B more with {micro(k)}. DDP's own reduction is enough."
                )


def _judge_passes(passes: Sequence[Pass], k: int) -> None:
    """Forwards and backwards must alternate, or the graphs of several micro-batches are alive at once."""
    kept = {each.number for each in passes if each.kind == "kept"}
    if kept:
        raise Mistake(
            f"the gradients are right, but {micro(len(kept))} whose backward has run still hold"
            f"{'s' if len(kept) == 1 else ''} the memory of a graph in a later forward: `retain_graph=True` keeps what "
            "`backward` would free. Each micro-batch needs a forward and a backward of its own, and no more."
        )
    used = {each.number for each in passes if each.kind == "backward"}  # a forward for printing needs no backward
    alive: set[int] = set()
    most = 0
    for each in passes:
        if each.kind == "backward":
            alive.discard(each.number)
        elif each.number in used:
            alive.add(each.number)
            most = max(most, len(alive))
            if each.samples > PER_RANK:
                raise Mistake(
                    f"the gradients are right, but {each.samples // PER_RANK} micro-batches go through one forward: "
                    "that needs the memory of the whole batch."
                )
    if most > 1:
        graphs, whole = ("all k graphs", "the whole batch") if most >= k else (f"{most} graphs", micro(most))
        raise Mistake(
            f"the gradients are right, but {graphs} are alive at once: that needs the memory of {whole}. Run each "
            "micro-batch's backward before the next one's forward."
        )
