"""The life of a unit's weights: gathered before it computes, freed after, and the next one's gather under way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from utils.checks.lab01.traps import lopsided
from utils.checks.lab04.made import Made
from utils.checks.lab04.models import Model
from utils.checks.lab05.models import LIFE, units
from utils.checks.lab05.running import is_empty, learners
from utils.checks.lab05.watching import Moment, Watch
from utils.checks.ranks import Mark
from utils.checks.verdict import Mistake, with_article

STEPS = 2
SECTIONS = {"forward": "forward", "backward": "backward", "evaluation": "forward in an evaluation"}

Groups = Sequence[Sequence[nn.Parameter]]


@dataclass(frozen=True)
class Life:
    """One rank's moments.

    returned   in words, if the answer returned something else than it should
    empty      the phase in which a unit computed whose storage was empty; "" if none did
    """

    moments: tuple[Moment, ...] = ()
    returned: str = ""
    empty: str = ""


@dataclass(frozen=True)
class Trial:
    """How an answer is called and what is watched.

    model    on which
    watched  (model) -> the modules that count as units, and the parameters that are each one's own
    call     (answer, model, make_optimizer) -> what it returned
    micro    whether each micro-batch of a step reduces its gradients: said to `set_sync` where the answer returns one;
             None where nothing is said
    """

    model: Model
    watched: Callable[[nn.Module], tuple[Sequence[nn.Module], Groups]]
    call: Callable[[Any, nn.Module, Any], Any]
    micro: tuple[bool | None, ...] = (True,)


def plainly(answer: Any, built: nn.Module, make_optimizer: Any) -> Any:
    """`answer(units, make_optimizer)`."""
    return answer(units(LIFE, built), make_optimizer)


def each_whole(built: nn.Module) -> tuple[Sequence[nn.Module], Groups]:
    given = units(LIFE, built)
    return given, [list(unit.parameters()) for unit in given]


PLAIN = Trial(LIFE, each_whole, plainly)


def sizes_of(trial: Trial) -> tuple[int, ...]:
    """Bytes of each unit that is watched."""
    return tuple(sum(p.nbytes for p in group) for group in trial.watched(trial.model.build())[1])


def section(step: int, phase: str, micro: int = 0) -> str:
    """The label in the record under which something is issued."""
    return f"step {step}, {phase}{f' {micro}' if micro else ''}"


def observe_life(trial: Trial, answer: Any, mark: Mark) -> Life:
    """In a rank: two training steps, and after each an evaluation without gradients."""
    warnings.filterwarnings("ignore", message="Full backward hook is firing")  # the first unit's inputs are data
    warnings.filterwarnings("ignore", message=".*returned a view tensor")
    model, rank, world_size = trial.model.build(), dist.get_rank(), dist.get_world_size()
    watch, made = Watch(*_first_two(trial, model, mark)), Made("SGD")
    mark("prepare")
    returned = trial.call(answer, model, made.make)
    several = len(trial.micro) > 1
    step, set_sync = returned if several and isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    if not callable(step) or (several and not callable(set_sync)):
        return Life(returned="nothing" if returned is None else with_article(type(returned).__name__))
    watch.end()
    try:
        for number in range(STEPS):
            watch.step = number
            for micro, sync in enumerate(trial.micro):
                if several and sync is not None:
                    set_sync(sync)
                _train(trial, model, watch, trial.model.batches(world_size, 10 * number + micro)[rank], micro)
            watch.begin("step")
            step()
            watch.end()
            watch.begin("evaluation")
            with torch.no_grad():
                model(trial.model.batches(world_size, 10 * number)[rank][0])
            watch.end()
            mark("after")
    except RuntimeError as error:
        if not is_empty(error) or learners(error):
            raise
        return Life(tuple(watch.moments), empty=watch.phase)
    return Life(tuple(watch.moments))


def _first_two(trial: Trial, model: nn.Module, mark: Mark) -> tuple[Sequence[nn.Module], Mark, Groups]:
    modules, groups = trial.watched(model)
    return modules, mark, groups


def _train(trial: Trial, model: nn.Module, watch: Watch, batch: Any, micro: int) -> None:
    inputs, targets = batch
    more = f" {micro}" if micro else ""
    watch.begin("forward", more)
    loss = lopsided(model(inputs), targets)
    watch.end()
    watch.begin("backward", more)
    loss.backward()
    watch.end()


def judge_returned(life: Life, wanted: str) -> None:
    """Raise Mistake unless the answer returned what it should."""
    if life.returned:
        raise Mistake(f"your function returns {life.returned}; it is to return {wanted}.")


def judge_empty(life: Life, root: int = -1) -> None:
    """Raise Mistake if a unit computed whose weights had no memory. root: the number of the root, if there is one."""
    if not life.empty:
        return
    moments = [m for m in life.moments if m.phase == life.empty and m.unit >= 0]
    if life.empty != "backward":
        begun = [m.unit for m in moments if not m.over]
        done = [m.unit for m in moments if m.over]
        inside = [unit for unit in begun if begun.count(unit) > done.count(unit)]
        unit, place = (inside or begun or [0])[-1], SECTIONS[life.empty]
        name = "the root" if unit == root else f"unit {unit}"
        raise Mistake(
            f"during the {place} of {name} weights are used that have no memory: gather the weights before a unit "
            "computes (`register_forward_pre_hook`), and write into the storage of which they are views."
        )
    raise Mistake(
        "in backward weights are used that have no memory: autograd needs them a second time. Gather each unit again "
        "before its backward (`register_full_backward_pre_hook`)."
    )
