"""A training whose state is known at every step, in slices for any number of ranks: what 04.save and 04.load are
tried on.

Adam and SGD work number by number. So what N ranks do to their slices is what one process does to the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from utils.checks.lab04.models import DEEP, SIZES, Model

Make = Callable[[list[torch.Tensor]], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Make] = {
    "Adam": lambda tensors: torch.optim.Adam(tensors, lr=0.01, foreach=False),
    "SGD with momentum": lambda tensors: torch.optim.SGD(tensors, lr=0.01, momentum=0.9, foreach=False),
}
Checkpoint = dict[str, list]


@dataclass(frozen=True)
class Training:
    """What is trained and with which of OPTIMIZERS. Gradients are drawn, the same for every number of ranks."""

    model: Model
    optimizer: str
    dtype: torch.dtype = torch.float32

    @property
    def name(self) -> str:
        return f"{self.model.name} with {self.optimizer}{' in bf16' if self.dtype == torch.bfloat16 else ''}"

    def buckets(self) -> list[list[nn.Parameter]]:
        """Fresh ones."""
        model = self.model.build().to(self.dtype)
        return self.model.buckets(model)

    def numels(self) -> list[int]:
        """Numbers of each bucket, without padding."""
        return [sum(p.numel() for p in bucket) for bucket in self.buckets()]

    def masters(self) -> list[torch.Tensor]:
        """Whole, at the beginning: finer than bf16 can show."""
        return [_drawn(numel, 1000 + number) for number, numel in enumerate(self.numels())]

    def gradients(self, step: int) -> list[torch.Tensor]:
        return [_drawn(numel, 10 * step + number) for number, numel in enumerate(self.numels())]

    def whole(self, steps: int) -> tuple[list[torch.Tensor], torch.optim.Optimizer]:
        """Masters and optimizer of one process after so many steps."""
        masters = self.masters()
        optimizer = OPTIMIZERS[self.optimizer](masters)
        for step in range(steps):
            take_step(optimizer, self.gradients(step))
        return masters, optimizer

    def checkpoint(self, steps: int) -> Checkpoint:
        """What `save` is to return after so many steps, at any number of ranks."""
        masters, optimizer = self.whole(steps)
        moments = [{name: value for name, value in optimizer.state[m].items() if value is not None} for m in masters]
        return {"masters": masters, "moments": moments}


def take_step(optimizer: torch.optim.Optimizer, gradients: list[torch.Tensor]) -> None:
    for master, gradient in zip(optimizer.param_groups[0]["params"], gradients, strict=True):
        master.grad = gradient
    optimizer.step()
    optimizer.zero_grad()


def slice_of(whole: torch.Tensor, rank: int, world_size: int) -> torch.Tensor:
    """The rank's slice of all numbers of a bucket, padded with zeros."""
    return _rows(whole, world_size)[rank].clone()


def _rows(whole: torch.Tensor, world_size: int) -> torch.Tensor:
    length = -(-len(whole) // world_size)
    padded = whole.new_zeros(world_size * length)
    padded[: len(whole)] = whole
    return padded.view(world_size, length)


def in_rows(whole: torch.Tensor, world_size: int, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """All numbers of a bucket after `change` of its slices (world_size, length)."""
    return change(_rows(whole, world_size)).reshape(-1)[: len(whole)]


def _drawn(numel: int, seed: int) -> torch.Tensor:
    return torch.randn(numel, generator=torch.Generator().manual_seed(seed))


TRAININGS = (  # in bf16 masters and weights lie apart, so that mistakes in one do not reach the other
    Training(DEEP, "Adam", torch.bfloat16),
    Training(SIZES, "SGD with momentum"),
    Training(DEEP, "Adam"),
)
