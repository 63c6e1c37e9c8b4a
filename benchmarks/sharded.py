"""What the benchmarks of chapter 05 time: a step of lab 05's wrapper, and one of `fully_shard`.

On a CPU `fully_shard` overlaps nothing as it comes: each collective is waited for where it is issued. At its best it
has three switches on: asynchronous unshard, the next unit's gather issued ahead in both passes, and reduce-scatters
that are left under way and waited for after backward (`set_custom_reduce_scatter`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from benchmarks.figures import resident
from utils import all_gather_single, reduce_scatter_single
from utils.runtime.held import Held
from utils.runtime.ledger import Ledger
from utils.runtime.paced import PacedLayer
from utils.runtime.recorder import clock
from utils.runtime.storages import Storages
from utils.theory.units import MiB

COUNT, UNIT, FORWARD = 8, 2 * MiB, 0.050  # units; of each: bytes, seconds of forward, half of backward's
WIDTH = 1024  # of units that compute: 4 MiB of weights
WARM_UP = 2  # steps: buffers and connections are there

Step = Callable[[], None]
MakeOptimizer = Callable[[Sequence[torch.Tensor]], torch.optim.Optimizer]


def paced_layers() -> list[nn.Module]:
    """Units that take their time by waiting; a parameter has 4 B."""
    return [PacedLayer(UNIT // 4, FORWARD) for _ in range(COUNT)]


def real_layers() -> list[nn.Module]:
    """Layers that compute, the same on every rank."""
    torch.manual_seed(0)
    return [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(COUNT)]


def sgd(tensors: Sequence[torch.Tensor]) -> torch.optim.Optimizer:
    """The optimizer of timed steps: one multiplication and one addition for a number."""
    return torch.optim.SGD(tensors, lr=1e-6)


def adam(tensors: Sequence[torch.Tensor]) -> torch.optim.Optimizer:
    """The optimizer where memory is counted."""
    return torch.optim.Adam(tensors, lr=1e-6)


class Gathers:
    """FSDP's all-gather as it is; remembers the buffers that it gathers into, as long as they live."""

    def __init__(self) -> None:
        self._buffers = Storages()

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        buffer = torch.empty(*size, dtype=dtype, device=device)
        self._buffers.note(buffer.untyped_storage(), "gathered into")
        return buffer

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, async_op: bool = False
    ) -> Any:
        return all_gather_single(output_tensor, input_tensor, group=group, async_op=async_op)

    def alive(self) -> list[torch.Tensor]:
        """The buffers that still exist, when the process group has let go of what it has carried."""
        time.sleep(0.05)
        return [torch.empty(0, dtype=torch.uint8).set_(storage) for storage, _ in self._buffers.alive()]


class Scatters:
    """FSDP's reduce-scatter, left under way until `finish`, which has to come before the optimizer."""

    def __init__(self) -> None:
        self._works: list[dist.Work] = []

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        self._works.append(reduce_scatter_single(output_tensor, input_tensor, op=op, group=group, async_op=True))

    def finish(self) -> None:
        while self._works:
            self._works.pop(0).wait()


def your_step(wrapper: Any, layers: Sequence[nn.Module], inputs: torch.Tensor, make_optimizer: MakeOptimizer) -> Step:
    """A training step of lab 05's `fsdp` or `prefetch`, each layer a unit."""
    model = nn.Sequential(*layers)
    finish = wrapper(list(layers), make_optimizer)

    def step() -> None:
        model(inputs).sum().backward()
        finish()

    return step


def torchs_step(
    layers: Sequence[nn.Module],
    inputs: torch.Tensor,
    make_optimizer: MakeOptimizer,
    best: bool,
    gathers: Gathers | None = None,
) -> Step:
    """A training step of `fully_shard`, each layer a unit; best: with its three switches on."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    scatters = Scatters()
    for layer in layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        if gathers is not None:
            layer.set_custom_all_gather(gathers)
        if best:
            layer.set_custom_reduce_scatter(scatters)
    model = fully_shard(nn.Sequential(*layers), mesh=mesh)
    if best:
        model._set_unshard_async_op(True)
        for i, layer in enumerate(layers):
            layer.set_modules_to_forward_prefetch(layers[i + 1 : i + 2])
            layer.set_modules_to_backward_prefetch(layers[i - 1 : i] if i else [layer])
    optimizer = make_optimizer(list(model.parameters()))

    def step() -> None:
        model(inputs).sum().backward()
        scatters.finish()
        optimizer.step()
        optimizer.zero_grad()

    return step


def timed(step: Step) -> float:
    """Seconds of one step, the ranks beginning together."""
    dist.barrier()
    begin = clock()
    step()
    return clock() - begin


def in_turns(steps: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    """In a rank: seconds of each step in each round, one after the other."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(WARM_UP + rounds):
        for name, step in steps.items():
            seconds = timed(step)
            if number >= WARM_UP:
                found[name].append(seconds)
    return found


def slowest(by_rank: Sequence[dict[str, list[float]]]) -> dict[str, list[float]]:
    """Each step as long as on its slowest rank."""
    return {name: [max(at) for at in zip(*(times[name] for times in by_rank), strict=True)] for name in by_rank[0]}


def in_memory(rank: int, wrapper: Any, best: bool, what: str) -> int:
    """In a rank: at most so many bytes in a step of `wrapper`, or of `fully_shard` where that is None.

    what: "parameters", at a ledger's events; "tensors", all that live; "process", by how much it has grown.
    """
    torchs_step([nn.Linear(2, 2)], torch.ones(1, 2), adam, best)()  # connections, threads, what is imported late
    before, _ = resident()
    layers, optimizers, gathers = real_layers(), [], Gathers()
    inputs = torch.ones(2, WIDTH, requires_grad=True)

    def make_optimizer(tensors: Any) -> torch.optim.Optimizer:
        optimizers.append(adam(tensors))
        return optimizers[-1]

    with Held(layers) if what == "tensors" else nullcontext() as held:
        if wrapper is not None:
            step = your_step(wrapper, layers, inputs, make_optimizer)
        else:
            step = torchs_step(layers, inputs, make_optimizer, best, gathers)
        for _ in range(2):
            step()
        if held is not None:
            held.forget_peak()
        if what != "parameters":
            step()
            return resident()[1] - before if held is None else held.peak
    ledger = Ledger(nn.Sequential(*layers), optimizers, weights=gathers.alive)
    with ledger.over_time() as history:
        step()
    return max(sample.holdings.weights + sample.holdings.master_weights for sample in history.samples)
