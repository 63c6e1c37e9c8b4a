"""In a rank: some training steps with a stage of ZeRO, and what was seen of them.

The weights are read where they are used, inside a forward, because a stage may hold them nowhere else. What exists is
counted by `utils.runtime.held`; what an optimizer needs inside its own step is not the answer's doing and left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule

from utils.checks.lab01.traps import lopsided
from utils.checks.lab04.made import Made
from utils.checks.lab04.models import Model
from utils.checks.lab04.reading import Reader, Weights
from utils.checks.ranks import Mark
from utils.checks.verdict import with_article
from utils.runtime.held import Held, unseen
from utils.runtime.storages import storage_bytes, storages_of
from utils.runtime.wire import WireBytes, read_counters, wire_bytes_since
from utils.runtime.works import WORKS

MICRO_BATCHES = (1, 3)  # of each step
SETTLE = 0.3  # seconds in which threads that carried a tensor may still let go of it

Arguments = Callable[[Model, nn.Module], Any]  # (model, built) -> buckets, layers, or whatever the answer takes
Law = Callable[[int, int, str], float]  # (world_size, step, moment) -> bytes


@dataclass(frozen=True)
class Case:
    """What is trained, with which of OPTIMIZERS, and whether everything that exists is weighed.

    communicates: whether the answer is to: if not, no thread carries a tensor, and none is waited for.
    """

    model: Model
    optimizer: str
    weighed: bool = False
    micro_batches: tuple[int, ...] = MICRO_BATCHES
    communicates: bool = True

    @property
    def name(self) -> str:
        return f"{self.model.name}, with {self.optimizer.removeprefix('small ')}"


@dataclass(frozen=True)
class Sample:
    """Bytes at one moment: in all, and of that by the names that can be found.

    optimizer  of masters and moments; master_gradients: of the masters' own `.grad`s
    peak       the most since the sample before
    gathered   the most of whole weights, seen where a module computes and where a gradient is ready
    flying     whether a collective is issued that nobody has waited for
    """

    total: int
    weights: int
    gradients: int
    optimizer: int
    master_gradients: int
    peak: int
    flying: bool
    gathered: int = 0


@dataclass(frozen=True)
class Trained:
    """One rank after the steps.

    returned   in words, if the answer returned no function
    optimized  elements of the tensors of each optimizer that was made
    made       by step, how many optimizers were made until its end
    types      of those tensors, such as "float32"
    weights    before the first step, then after each; as they were used, so without those that no forward uses
    samples    by step: at the end of the last "forward", of the last "backward", and of the "step"
    wire       by step, what the sockets counted
    past       the class of an optimizer, or of a DDP module, that was made past `make_optimizer`; "" if none was
    activations bytes that a plain forward and backward of the same model needs for activations, at most
    """

    returned: str = ""
    optimized: tuple[int, ...] = ()
    made: tuple[int, ...] = ()
    types: frozenset[str] = frozenset()
    weights: tuple[Weights, ...] = ()
    samples: tuple[Mapping[str, Sample], ...] = ()
    wire: tuple[WireBytes | None, ...] = ()
    past: str = ""
    activations: int = 0


def observe(
    case: Case,
    arguments: Callable[[Model, nn.Module], Any],
    law: Callable[[int, int, str], float],
    answer: Any,
    mark: Mark,
) -> Trained:
    """In a rank: `answer(arguments(model), make_optimizer)`, then the steps of the case.

    law: the bytes that may exist when a forward, a backward or a step is over. Nobody's fault if for a moment the
    process group still holds on to a tensor: so long is waited for, and no longer than SETTLE.
    """
    warnings.filterwarnings("ignore", message="Full backward hook is firing")  # the first layer's inputs are data
    model, rank, world_size = case.model.build(), dist.get_rank(), dist.get_world_size()
    reader = Reader(model)
    probe = case.model.batches(world_size, 99)[rank][0]
    activations = _activations(case, rank) if case.weighed else 0
    enough = partial(law, world_size)
    held = Held(model) if case.weighed else None
    made = Made(case.optimizer, held=held)
    weights, samples, wire, count = [reader.read(lambda: model(probe))], [], [], []
    gathered = _Gathered(model)
    if case.weighed:
        reader.passing = gathered.look
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(gathered.look)
    with ExitStack() as stack:
        stack.enter_context(made.others_noted())
        stack.enter_context(held or nullcontext())
        mark("prepare")
        step = answer(arguments(case.model, model), made.make)
        made.past = next((type(m).__name__ for m in model.modules() if isinstance(m, FSDPModule)), made.past)
        if not callable(step):
            return Trained(returned="nothing" if step is None else with_article(type(step).__name__))
        for number, k in enumerate(case.micro_batches):
            seen: dict[str, Sample] = {}
            before = _counters(case)
            for micro in range(k):
                with unseen():
                    inputs, targets = case.model.batches(world_size, 10 * number + micro)[rank]
                mark(f"step {number}, forward {micro}")
                _forget_peak(held)
                loss = lopsided(model(inputs), targets) / k
                seen["forward"] = _sample(case, held, model, made, enough(number, "forward") + activations, gathered)
                mark(f"step {number}, backward {micro}")
                loss.backward()
                del loss
                seen["backward"] = _sample(case, held, model, made, enough(number, "backward"), gathered)
            mark(f"step {number}, step")
            step()
            mark(f"step {number}, after")
            seen["step"] = _sample(case, held, model, made, enough(number, "step"), gathered)
            count.append(len(made.optimizers))
            if case.weighed:
                dist.barrier()
            wire.append(wire_bytes_since(before) if before else None)
            samples.append(seen)
            weights.append(reader.read(lambda: model(probe)))
    optimized = tuple(
        sum(p.numel() for group in each.param_groups for p in group["params"]) for each in made.optimizers
    )
    return Trained(
        "",
        optimized,
        tuple(count),
        frozenset(made.types),
        tuple(weights),
        tuple(samples),
        tuple(wire),
        made.past,
        activations,
    )


def _counters(case: Case) -> Any:
    """The sockets' counters; nobody sends before all have read theirs."""
    if not case.weighed:
        return None
    dist.barrier()
    counters = read_counters()
    dist.barrier()
    return counters


def _forget_peak(held: Held | None) -> None:
    if held is not None:
        held.forget_peak()


class _Gathered:
    """The most bytes of parameters that were there whole, at the moments when somebody looked."""

    def __init__(self, model: nn.Module) -> None:
        self._sizes = {p: p.nbytes for p in model.parameters()}
        self.most = 0

    def look(self, _: Any = None) -> None:
        whole = (size for p, size in self._sizes.items() if storage_bytes(p.untyped_storage()) >= size)
        self.most = max(self.most, sum(whole))

    def take(self) -> int:
        """Since the last time."""
        most, self.most = self.most, 0
        return most


def _sample(
    case: Case, held: Held | None, model: nn.Module, made: Made, enough: float, gathered: _Gathered
) -> Sample | None:
    """What exists now, and the most since the sample before."""
    if held is None:
        return None
    # While a collective is on its way more may exist; but then, too, the one before it may still be held for a moment.
    deadline = time.monotonic() + (0 if not case.communicates else SETTLE / 3 if WORKS.in_use else SETTLE)
    while held.bytes > enough and time.monotonic() < deadline:
        time.sleep(0.002)
    parameters = list(model.parameters())
    state = [[o.param_groups, dict(o.state)] for o in made.optimizers]
    sample = Sample(
        held.bytes,
        _bytes(parameters),
        _bytes([p.grad for p in parameters if p.grad is not None]),
        _bytes(state),
        _bytes([t.grad for o in made.optimizers for group in o.param_groups for t in group["params"]]),
        held.peak,
        bool(WORKS.in_use),
        gathered.take(),
    )
    held.forget_peak()
    return sample


def _bytes(things: Any) -> int:
    """Of the storages behind tensors, each once."""
    return sum({storage._cdata: storage_bytes(storage) for storage in storages_of(things)}.values())


def _activations(case: Case, rank: int) -> int:
    """An upper bound, from a plain forward of the same model: what it leaves for backward, and as much again."""
    model = case.model.build()
    inputs, targets = case.model.batches(dist.get_world_size(), 0)[rank]
    with Held(model) as held:
        before = held.bytes
        loss = lopsided(model(inputs), targets)
        kept = held.peak - before
        loss.backward()
    return 2 * kept
