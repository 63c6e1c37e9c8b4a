"""Training steps: what a rank's optimizer was given, and the single process that sees every rank's samples.

The optimizer is SGD. Under Adam a gradient that is N times too large gives nearly the same weights, and the mistake
would not show.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from utils.checks.lab01.gradients import Gradients, gradients_of
from utils.checks.lab01.graphs import GraphWatch
from utils.checks.lab01.traps import Batch, Trap, joined, lopsided
from utils.checks.ranks import STEP, Mark, hold_back
from utils.checks.verdict import Mistake, with_article

WEIGHT_TOLERANCE = 1e-6  # of the norm of all weights, for each step taken

Weights = dict[str, torch.Tensor]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Pass(NamedTuple):
    """A forward of the model, or the backward through its output; both have the same number within the call.

    "kept": when the next forward began, that pass's graph still held tensors, although its backward had run.
    """

    kind: Literal["forward", "backward", "kept"]
    number: int
    samples: int


def make_optimizer(model: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def weights_of(model: nn.Module) -> Weights:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@dataclass
class Watch:
    """In a rank: notes the gradients at every `optimizer.step()`, call by call, and what each call did besides."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    mark: Mark
    steps: list[list[Gradients]] = field(default_factory=list)  # by call of the answer, then by optimizer step
    returned: list[Any] = field(default_factory=list)
    weights: list[Weights] = field(default_factory=list)  # after each call
    passes: list[list[Pass]] = field(default_factory=list)  # by call, in order
    reduced: list[int] = field(default_factory=list)  # by call, the bytes that DDP's own reducer all-reduced
    closure: bool = False  # whether any `optimizer.step` was given one: it makes the gradients only afterwards
    joins: bool = False  # whether DDP's `join` was entered
    wraps: bool = False  # whether a DDP module was made
    graphs: GraphWatch = field(default_factory=GraphWatch)

    def __post_init__(self) -> None:
        self.optimizer.register_step_pre_hook(self._at_step)
        self._forward, self.model.forward = self.model.forward, self._at_forward

    def _at_step(self, _: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = [each for each in (*arguments, *named.values()) if each is not self.optimizer]
        self.closure = self.closure or any(map(callable, given))
        self.steps[-1].append(gradients_of(self.model))
        self.mark(f"{STEP}{len(self.steps) - 1}")

    def _at_forward(self, *arguments: Any, **named: Any) -> Any:
        if self.passes:
            ran = {each.number: each for each in self.passes[-1] if each.kind == "backward"}
            kept = sorted(self.graphs.alive() & ran.keys())
            self.passes[-1] += [ran[number]._replace(kind="kept") for number in kept]
            self.graphs.number = len(self.passes[-1])
        output = self._forward(*arguments, **named)
        if self.passes and isinstance(output, torch.Tensor) and output.requires_grad:
            passes, number, samples = self.passes[-1], len(self.passes[-1]), len(output)
            passes.append(Pass("forward", number, samples))
            output.register_hook(lambda _: passes.append(Pass("backward", number, samples)))
        return output

    def call(self, answer: Any, *arguments: Any) -> None:
        """Call the answer once; its operations stand after the mark "call i", from its step on after "step i"."""
        self.steps.append([])
        self.passes.append([])
        self.reduced.append(0)
        if len(self.steps) == 1:
            hold_back(dist.get_world_size() - 1)
        self.mark(f"call {len(self.steps) - 1}")
        self.graphs = GraphWatch()
        with self.graphs.watching(), self._ddp_noted():
            self.returned.append(_plain(answer(*arguments)))
        self.weights.append(weights_of(self.model))

    @contextmanager
    def _ddp_noted(self) -> Iterator[None]:
        make = DistributedDataParallel.__init__

        def noted(module: DistributedDataParallel, *arguments: Any, **named: Any) -> None:
            self.wraps = True
            make(module, *arguments, **named)

        with patch.object(DistributedDataParallel, "__init__", noted):
            yield

    def taken(self) -> Taken:
        return Taken(
            tuple(map(tuple, self.steps)),
            tuple(self.returned),
            tuple(self.weights),
            tuple(map(tuple, self.passes)),
            tuple(self.reduced),
            self.closure,
            self.joins,
            self.wraps,
        )


@dataclass(frozen=True)
class Taken:
    """One rank's calls of the answer, with the fields of `Watch`."""

    steps: tuple[tuple[Gradients, ...], ...]
    returned: tuple[Any, ...]
    weights: tuple[Weights, ...]
    passes: tuple[tuple[Pass, ...], ...]
    reduced: tuple[int, ...]
    closure: bool
    joins: bool
    wraps: bool


class Twin:
    """One process that takes the same steps on every rank's samples together."""

    def __init__(self, trap: Trap) -> None:
        self.model = trap.build()
        self.optimizer = make_optimizer(self.model)

    def gradients(self, batch: Batch, loss: Loss = lopsided) -> Gradients:
        """Of the mean loss over this batch, at the weights of now."""
        model = copy.deepcopy(self.model)
        model.zero_grad()
        loss(model(batch[0]), batch[1]).backward()
        return gradients_of(model)

    def step(self, batches: Sequence[Batch]) -> float:
        """One step on all batches joined; returns the mean loss over their samples."""
        inputs, targets = joined(list(batches))
        self.optimizer.zero_grad()
        loss = lopsided(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def one_step_each(taken: Sequence[Taken], call: int, steps: int = 1) -> None:
    """Raise Mistake unless every rank called `optimizer.step()` that many times in the call."""
    no_closure(taken)
    if any(each.wraps for each in taken):
        raise Mistake(
            "a `DistributedDataParallel` is made inside the function: each call makes another, which sends all weights "
            "again, and it averages only as long as somebody keeps it. A model is wrapped once, before training "
            "(exercise 7); here the averaging is yours."
        )
    for rank, each in enumerate(taken):
        got = len(each.steps[call])
        if got != steps:
            times = "never called" if got == 0 else "called once" if got == 1 else f"called {got} times"
            wanted = "once" if steps == 1 else f"{steps} times"
            raise Mistake(f"`optimizer.step()` is {times} on rank {rank}; it should be called {wanted}.")


def no_closure(taken: Sequence[Taken]) -> None:
    """Raise Mistake if the step was given a closure: the gradients at its beginning are then not those it takes."""
    if any(each.closure for each in taken):
        raise Mistake(
            "call `optimizer.step()` without a closure: the check looks at the gradients when the step begins, and a "
            "closure makes them only inside it."
        )


def own_samples_alone(taken: Sequence[Taken], call: int, most: Sequence[int | None]) -> None:
    """Raise Mistake if a rank ran more than `most` samples forward and backward in the call; None: any number."""
    for rank, (each, limit) in enumerate(zip(taken, most, strict=True)):
        samples = sum({p.number: p.samples for p in each.passes[call] if p.kind == "backward"}.values())
        if limit is not None and samples > limit:
            raise Mistake(
                f"the gradients are right, but rank {rank} runs {samples} samples through the model, where its own "
                f"share has {limit}: every rank is to compute on its own samples alone, or more ranks save no time."
            )


def same_weights(taken: Sequence[Taken], call: int, twin: Twin, steps: int = 1) -> None:
    """Raise Mistake unless every rank has the twin's weights after that call, the last of so many steps."""
    wanted = weights_of(twin.model)
    norm = sum(w.double().square().sum() for w in wanted.values()) ** 0.5
    for rank, each in enumerate(taken):
        off = sum((each.weights[call][n].double() - w.double()).square().sum() for n, w in wanted.items()) ** 0.5
        if not off <= (call + steps) * WEIGHT_TOLERANCE * norm:
            raise Mistake(
                f"the gradients at each step are right, but rank {rank}'s weights end up elsewhere than the single "
                f"process's (relative difference {(off / norm).item():.1g}): does something else change them?"
            )


def _plain(value: Any) -> Any:
    """A number as a float, None as None, anything else by the name of its type."""
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return with_article(type(value).__name__)
