"""06.hsdp: judges training on nodes. First what is made and how replicas begin, then numbers, bytes across, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from utils.checks.lab01.cases import on_case
from utils.checks.lab01.gradients import Gradients, Suspect, added, compare, mean_factors, scaled
from utils.checks.lab04.memory import WHOLE, judge_memory, judge_rest
from utils.checks.lab04.numbers import STILL, judge_returned, judge_weights
from utils.checks.lab04.suspects import Groups, Slices, moved, named
from utils.checks.lab04.traffic import ops_of
from utils.checks.lab04.training import Trained
from utils.checks.lab04.twin import Steps, twin
from utils.checks.lab05.running import run
from utils.checks.lab06.crossing import SMALL, TOLERANCE, judge_crossing, judge_gathers
from utils.checks.lab06.places import DEADLINE, Place
from utils.checks.lab06.training import (
    FIRST,
    ON_FOUR,
    ON_SIX,
    ON_THE_SQUARE,
    STAGE,
    WEIGHED_TRIAL,
    Trial,
    differing,
    groups_by_name,
    train,
)
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake

# What the ranks may raise -> what to do.
REMEDIES = {
    "`broadcast_` uses a tensor": " `wrap` frees the weights: broadcast rank 0's before it.",
    "invalid tensor size": (
        " The parts that are gathered are not alike: give `wrap` the rank's place in the shard group, 0 to G - 1, and "
        "the ranks of that group."
    ),
    "attempting to assign a gradient with dtype": " The masters are fp32: `master.grad = gradient.float()`.",
}


def verify(answer: Any) -> str:
    for ranks, trials in ((4, (FIRST,)), (4, ON_THE_SQUARE), (4, ON_FOUR), (6, ON_SIX)):
        seen = _run(answer, trials, ranks)
        for trial in trials:
            with on_case(trial.name, seen[trial.name], first=trial in (FIRST, WEIGHED_TRIAL)):
                judge(trial, seen[trial.name])
    return (
        "over 2 steps on 2 x 2, 1 x 4, 4 x 1, 3 x 2 and 2 x 3 the gradients of each are a single process's within "
        "1e-5, though the ranks begin with weights of their own; with Adam the weights stay within 1e-4 of the way "
        "gone. Gathers stay inside, for evaluations too; each node sends 2 (R - 1)/R S across for each micro-batch, by "
        "the record, and each rank holds 16Ψ/G, within 1 %."
    )


def _run(answer: Any, trials: Sequence[Trial], ranks: int) -> dict[str, list[Seen]]:
    try:
        return run(answer, {trial.name: partial(train, trial) for trial in trials}, ranks, DEADLINE)
    except Mistake as mistake:
        more = next((remedy for sign, remedy in REMEDIES.items() if sign in str(mistake)), "")
        raise Mistake(f"{mistake}{more}") from None


def judge(trial: Trial, seen: Sequence[Seen]) -> None:
    """In the notebook: one case on all ranks; raise Mistake, naming the first thing that is wrong."""
    place, case = trial.place, trial.case
    trained: list[Trained] = [each.value.trained for each in seen]
    groups = groups_by_name(case.model, case.model.build())
    judge_returned(trained)
    _judge_optimizers(trial, trained)
    _judge_start(trial, seen)
    if case.optimizer == "SGD":
        _judge_gradients(trial, trained, groups)
    else:
        judge_weights(case, trained, groups)
    for step in range(len(case.micro_batches)):
        judge_gathers(place, [ops_of(each, step) for each in seen])
        after = [each.after(f"step {step}, after") for each in seen]
        judge_gathers(place, after, "a forward without gradients leaves the node: ")
    if case.weighed:
        _judge_bytes(trial, seen)
        for first in range(0, place.ranks, place.per_node):  # a node holds what ZeRO-3 does on its ranks alone
            node = range(first, first + place.per_node)
            names = [
                f"rank {rank} of {place.ranks} (node {place.node_of(rank)}; N here: its {place.per_node} ranks)"
                for rank in node
            ]
            judge_rest(STAGE, [trained[rank] for rank in node], names)
            judge_memory(STAGE, [trained[rank] for rank in node], names)


def _judge_optimizers(trial: Trial, trained: Sequence[Trained]) -> None:
    parameters = list(trial.case.model.build().parameters())
    whole = sum(p.numel() for p in parameters if p.requires_grad)
    frozen = sum(p.numel() for p in parameters) - whole
    g, n = trial.place.per_node, trial.place.ranks
    for rank, each in enumerate(trained):
        if each.made[-1] > each.made[0]:
            raise Mistake("optimizers are made again in the steps: one that is made anew has lost its moments.")
        numbers = sum(each.optimized)
        if g > 1 and numbers >= whole:
            raise Mistake(
                f"the optimizer of rank {rank} steps {numbers} numbers, and the model has {whole} trainable ones: on "
                f"nodes of {g} ranks each is to step its shard alone, and to keep masters and moments of that."
            )
        if frozen and numbers > whole / g + len(parameters):  # a parameter may be padded by less than one number
            raise Mistake(
                f"the optimizer of rank {rank} steps {numbers} numbers, and 1/{g} of the {whole} that train are "
                f"{whole / g:g}: the shards of frozen units have no place in it. `wrap` gives no gradient for those."
            )
    total = sum(sum(each.optimized) for each in trained)
    if total < whole * trial.place.nodes and total <= whole + n * len(parameters):
        raise Mistake(
            f"the ranks' optimizers step {total} numbers together, and {trial.place.nodes} replicas of {whole} make "
            f"{whole * trial.place.nodes}: the weights are shared out among all {n} ranks, so that every gather "
            f"crosses. Shard by the place in the shard group, in {g} parts."
        )


def _judge_start(trial: Trial, seen: Sequence[Seen]) -> None:
    starts = [each.value.start for each in seen]
    found = differing(starts, seen[0].value.trained.weights[0])
    if not found:
        return
    rank, name = found
    place = trial.place
    alike = differing([starts[r] for r in place.shard_ranks(rank)], starts[place.shard_ranks(rank)[0]]) is None
    raise Mistake(
        f"the replicas begin with different weights: what rank {rank} computes with is not the `{name}` that rank 0 "
        f"began with{f', though all on node {place.node_of(rank)} agree' if alike and rank else ''}. "
        "Equal gradients keep replicas equal only if they begin so: broadcast rank 0's weights to all ranks, frozen "
        "ones too, before they are sharded."
    )


def _judge_gradients(trial: Trial, trained: Sequence[Trained], groups: Groups) -> None:
    case, n = trial.case, len(trained)
    steps = twin(case, n)
    names = sorted(set(trained[0].weights[0]) & {name for group in groups for name in group})
    for step in range(len(case.micro_batches)):
        got = [moved(each.weights[step], each.weights[step + 1], names) for each in trained]
        if all(not g.any() for each in got for g in each.values()):
            raise Mistake(STILL)
        local = [named(each, names) for each in steps.local[step]]
        suspects = _suspects(trial, steps, step, groups, names)
        compare(got, named(steps.whole[step], names), local, _factors(trial.place), suspects)


def _factors(place: Place) -> Mapping[float, str]:
    """Multiples of the gradients that a known mistake leaves; on 2 x 2 both levels have the same."""
    n, g, r = place.ranks, place.per_node, place.nodes
    one = "the mean is taken over one level alone, and the other is summed"
    again = "the mean over all ranks is divided by the ranks of one level once more"
    return mean_factors(n) | {
        g: one,
        r: one,
        1 / g: again,
        1 / r: again,
        n: "the gradients are summed, not averaged",
        1 / n: "the gradients are averaged twice: their mean is divided by the number of ranks once more",
    }


def _suspects(trial: Trial, steps: Steps, step: int, groups: Groups, names: Sequence[str]) -> list[Suspect]:
    place, local = trial.place, steps.local[step]
    shapes = {name: value.shape for name, value in steps.weights[step].items()}
    slices = Slices(groups, shapes, place.per_node)

    def mean(ranks: Sequence[int], divisor: int) -> Gradients:
        return scaled(added(local[rank] for rank in ranks), 1 / divisor)

    found = []
    for divisor in sorted({place.per_node, place.ranks, 1}):
        inside = [named(mean(place.shard_ranks(rank), divisor), names) for rank in range(place.ranks)]
        found.append(
            Suspect(
                inside,
                "the gradients are reduced inside the node alone: the replicas on the other nodes never hear of it, "
                "and drift apart. All-reduce each shard in the replica group.",
            )
        )
    for divisor in sorted({place.nodes, place.ranks, 1}):
        parts = [slices.alone(mean(place.replica_ranks(each), divisor), each) for each in range(place.per_node)]
        found.append(
            Suspect(
                [named(added(parts), names)] * place.ranks,
                "the gradients are reduced across the nodes alone: what the others on the node have found is lost. "
                "Reduce-scatter in the shard group first.",
            )
        )
    if trial.case.micro_batches[step] > 1:
        found.append(
            Suspect(
                [named(steps.last[step], names)] * place.ranks,
                "with several micro-batches the earlier ones are lost: add each result to the gradient shard.",
            )
        )
    whole = steps.whole[step]
    unused = {name for group in groups for name in group if whole[name] is None or not whole[name].any()}
    late = {name for group in groups if unused & set(group) for name in group}
    if late - unused:
        found.append(
            Suspect(
                [{name: None if name in late else whole[name] for name in names}] * place.ranks,
                f"the gradients of `{min(late - unused)}` never arrive: a unit with a parameter that its forward does "
                "not use is never ready in backward. In `step`, before the optimizer steps, call `finish()` of every "
                "unit.",
            )
        )
    if step:
        found.append(
            Suspect(
                [named(added([steps.whole[step], steps.whole[step - 1]]), names)] * place.ranks,
                f"in step {step} the gradients of the step before are still in the sum: after `step()` they are spent.",
            )
        )
    return found


def _judge_bytes(trial: Trial, seen: Sequence[Seen]) -> None:
    """What a node sends across, and what a rank sends inside."""
    place = trial.place
    for step, k in enumerate(trial.case.micro_batches):
        by_rank = [ops_of(each, step) for each in seen]
        judge_crossing(place, by_rank, WHOLE, place.law(WHOLE, k))
        law = 3 * k * (place.per_node - 1) / place.per_node * WHOLE
        for rank, ops in enumerate(by_rank):
            inside = [op for op in ops if not place.crosses(op)]
            sent = sum(op.ring_bytes for op in inside)
            if sent > law * (1 + TOLERANCE) + SMALL:
                kinds = {op.kind: sum(o.ring_bytes for o in inside if o.kind == op.kind) for op in inside}
                most = max(kinds, key=lambda kind: kinds[kind])
                raise Mistake(
                    f"the numbers are right, but in a step of {k} micro-batches rank {rank} sends {sent / WHOLE:.2f} S "
                    f"inside its node, where two all-gathers and a reduce-scatter for each send {law / WHOLE:.2f} S "
                    f"(S: the bytes of all weights in bf16). Of these {kinds[most] / WHOLE:.2f} S are {most}."
                )
