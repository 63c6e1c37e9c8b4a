"""The job that 07.train is given: small, and with everything that a checkpoint can forget.

Weights and Adam's moments are alike on all ranks. Each rank's own are its place in its data, as it skips samples that
are too long, and its random state, from which the dropout takes its masks.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

WIDTH, BATCH, SAMPLES = 4, 3, 40


class Data:
    """An endless iterator over this rank's batches, shuffled anew in each epoch."""

    def __init__(self, rank: int) -> None:
        self._rank, self._epoch, self._next = rank, 0, 0
        self.drawn: tuple[int, ...] = ()  # the samples of the last batch
        self.started = (0, 0)  # where the last batch began

    def __iter__(self) -> Iterator[torch.Tensor]:
        return self

    def __next__(self) -> torch.Tensor:
        found: list[int] = []
        self.started = self._epoch, self._next
        while len(found) < BATCH:
            order = list(range(SAMPLES))
            random.Random(1000 * self._rank + self._epoch).shuffle(order)
            sample = order[self._next]
            self._next += 1
            if self._next == SAMPLES:
                self._epoch, self._next = self._epoch + 1, 0
            if (7 * sample + 3 * self._rank) % 5:  # a fifth of the samples is too long
                found.append(SAMPLES * self._rank + sample)
        self.drawn = tuple(found)
        draw = (torch.randn(WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(s)) for s in found)
        return torch.stack(tuple(draw))

    def state_dict(self) -> dict[str, int]:
        """Where this rank's next sample stands."""
        return {"epoch": self._epoch, "next": self._next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._epoch, self._next = state["epoch"], state["next"]


@dataclass(frozen=True)
class Snapshot:
    """A rank before a step. step: how many were done by the last call of `reached`, -1 if there was none.

    random: a digest of the random state. drawn: the samples of the batch; place: (epoch, number) where it began.
    """

    step: int
    weights: tuple[float, ...]
    moments: tuple[float, ...]
    optimizer_steps: int
    rate: float
    schedule: int
    drawn: tuple[int, ...]
    place: tuple[int, int]
    random: str


class Job:
    """What the answer gets: `model`, `optimizer`, `schedule`, `data`, and `step(batch)`."""

    def __init__(self, note: Callable[[Snapshot], None], reached: Callable[[], int]) -> None:
        self.rank, self._note, self._reached = dist.get_rank(), note, reached
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(WIDTH, 8), nn.Tanh(), nn.Dropout(0.25), nn.Linear(8, WIDTH), nn.Dropout(0.1)
        ).double()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=3, gamma=0.8)
        self.data = Data(self.rank)
        torch.manual_seed(100 + self.rank)

    def step(self, batch: torch.Tensor) -> None:
        """One step with the mean gradient of all ranks."""
        self._note(self.snapshot())
        (self.model(batch) - batch.roll(1, dims=1)).square().mean().backward()
        for p in self.model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()

    def snapshot(self) -> Snapshot:
        states = [self.optimizer.state.get(p, {}) for p in self.model.parameters()]
        moments = [state[name] for name in ("exp_avg", "exp_avg_sq") for state in states if name in state]
        return Snapshot(
            self._reached(),
            _flat(self.model.parameters()),
            _flat(moments),
            max((int(state["step"]) for state in states if "step" in state), default=0),
            self.optimizer.param_groups[0]["lr"],
            self.schedule.last_epoch,
            self.data.drawn,
            self.data.started,
            hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest(),
        )


def plain(job: Job, steps: int) -> None:
    """What the answer is to come out as, whatever happens to its ranks."""
    for _ in range(steps):
        job.step(next(job.data))


def _flat(tensors: Any) -> tuple[float, ...]:
    return tuple(x for each in tensors for x in each.detach().flatten().tolist())
