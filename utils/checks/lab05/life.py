"""The life of a unit's weights: gathered before it computes, freed after, and the next one's gather under way."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.lab01.traps import lopsided
from utils.checks.lab04.made import Made
from utils.checks.lab05.models import LIFE, sizes, units
from utils.checks.lab05.watching import Moment, Watch
from utils.checks.ranks import Mark, Seen
from utils.checks.verdict import Mistake, with_article

STEPS = 2
_SECTIONS = {"forward": "forward", "backward": "backward", "evaluation": "forward in an evaluation"}


@dataclass(frozen=True)
class Life:
    """One rank's moments; `returned`, in words, if the answer returned no function."""

    moments: tuple[Moment, ...] = ()
    returned: str = ""


def observe_training(answer: Any, mark: Mark) -> Life:
    """In a rank: two training steps, and after each an evaluation without gradients."""
    warnings.filterwarnings("ignore", message="Full backward hook is firing")  # the first unit's inputs are data
    model, rank, world_size = LIFE.build(), dist.get_rank(), dist.get_world_size()
    given = units(LIFE, model)
    watch, made = Watch(given, mark), Made("SGD")
    mark("prepare")
    step = answer(given, made.make)
    if not callable(step):
        return Life(returned="nothing" if step is None else with_article(type(step).__name__))
    watch.end()
    for number in range(STEPS):
        watch.step = number
        inputs, targets = LIFE.batches(world_size, number)[rank]
        watch.begin("forward")
        loss = lopsided(model(inputs), targets)
        watch.end()
        watch.begin("backward")
        loss.backward()
        watch.end()
        watch.begin("step")
        step()
        watch.end()
        watch.begin("evaluation")
        with torch.no_grad():
            model(inputs)
        watch.end()
        mark("after")
    return Life(tuple(watch.moments))


def judge_life(seen: Sequence[Seen], ahead: bool) -> None:
    """Raise Mistake unless the events come in the order of the lifecycle. ahead: the next gather must be under way."""
    for each in seen:
        for moment in each.value.moments:
            if moment.unit < 0:
                _judge_end(moment)
            else:
                _judge_unit(moment, ahead)
        _judge_gathers(each)


def _judge_unit(moment: Moment, ahead: bool) -> None:
    unit, last, where = moment.unit, len(sizes()) - 1, _SECTIONS[moment.phase]
    back = moment.phase == "backward"
    after = unit - 1 if back else unit + 1
    has_next = 0 <= after <= last
    more = moment.whole - {unit, after}
    if len(moment.whole) > last:
        raise Mistake(
            f"all {last + 1} units are gathered during the {where} of unit {unit}: gather each before its own forward "
            "and its own backward, and free it after."
        )
    done = sorted(j for j in more if (j > unit if back else j < unit))
    if done:
        raise Mistake(
            f"during the {where} of unit {unit}, unit {done[0]} is gathered, and its own {where} is over: it is freed "
            "too late, or the next unit is looked for in the wrong direction."
        )
    if more:
        raise Mistake(
            f"during the {where} of unit {unit}, unit {min(more)} is gathered already: at most the next one, "
            f"{f'unit {after}' if has_next else 'here none'}, may be on its way."
        )
    if not (ahead and moment.over and has_next):
        return
    if after not in moment.whole and sizes()[after] not in moment.flying:
        raise Mistake(
            f"when the {where} of unit {unit} has computed, the gather of unit {after} is not issued yet: issue it "
            f"before unit {unit} computes, so that both go on at once."
        )
    if not moment.flying:
        raise Mistake(
            f"the prefetch blocks: the gather of unit {after} is waited for before unit {unit} has computed. Issue it "
            f"with `async_op=True`, and wait for it when unit {after} begins."
        )


def _judge_end(moment: Moment) -> None:
    kept = set(moment.whole)
    if moment.phase == "forward":
        kept -= {len(sizes()) - 1}  # its backward comes next
    if not kept:
        return
    names = ", ".join(str(number) for number in sorted(kept))
    when = {
        "made": "nothing has computed yet",
        "forward": "the forward is over",
        "backward": "the backward is over",
        "step": "the step is over",
        "evaluation": "an evaluation without gradients is over",
    }[moment.phase]
    raise Mistake(f"{when}, and the weights of unit {names} are gathered: each rank is to hold its shards alone.")


def _judge_gathers(seen: Seen) -> None:
    """Raise Mistake if a unit is gathered twice where once is enough; units are told by their bytes."""
    for step in range(STEPS):
        for phase, where in _SECTIONS.items():
            gathered = [op.bytes for label, op in seen.issued if label == f"step {step}, {phase}"]
            kinds = [op.kind for label, op in seen.issued if label == f"step {step}, {phase}"]
            for unit, size in enumerate(sizes()):
                times = sum(k == "all_gather" and b == size for k, b in zip(kinds, gathered, strict=True))
                if times > 1:
                    raise Mistake(f"unit {unit} is gathered {times} times in one {where}; once is enough.")
