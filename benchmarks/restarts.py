"""A rank killed at a random step, restarted by `torch.distributed.run`: steps lost, and the final loss.

Two ranks train a small model for 40 steps with a checkpoint every 5. In each run one of them gets SIGKILL, at a step or
in the writing of a checkpoint, both drawn by chance. At most 5 steps may be done again, and the loss of the last step,
and the weights, must be those of a run that nobody disturbed, bit for bit.
"""

from __future__ import annotations

import argparse
import random
import statistics
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from benchmarks.figures import Figure
from utils.runtime.jobs.checkpoints import load, save
from utils.runtime.jobs.faults import Kill, reached
from utils.runtime.jobs.restart import run_with_restarts

RANKS, STEPS, EVERY = 2, 40, 5


def train(rank: int, folder: Path, steps: int = STEPS, every: int = EVERY) -> tuple[float, list[float]]:
    """Data-parallel training by hand that can begin anywhere. Returns the last step's mean loss and the weights.

    The data of a step depends on the step's number and the rank alone, so that a step done again is the same step.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    stored = load(folder / "checkpoint")
    state, start = stored or (None, 0)
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for step in range(start, steps):
        reached(step)
        x = torch.randn(8, 16, generator=torch.Generator().manual_seed(step * RANKS + rank))
        loss = (model(x) - x.sum(1, keepdim=True).sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for each in (*(p.grad for p in model.parameters()), mean := loss.detach()):
            dist.all_reduce(each)
            each /= RANKS
        optimizer.step()
        if (step + 1) % every == 0 and step + 1 < steps:
            if rank == 0:
                save(
                    folder / "checkpoint", {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step + 1
                )
            dist.barrier()  # nobody goes on before it is stored
    return mean.item(), nn.utils.parameters_to_vector(model.parameters()).tolist()


def main() -> None:
    """Run, print a line for each run, and the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--runs", type=int, default=10, help="how often a rank is killed; a run takes 10 seconds")
    arguments.add_argument("--seed", type=int, default=0, help="of the draw")
    given = arguments.parse_args()
    draw = random.Random(given.seed)
    undisturbed = run_with_restarts(train, RANKS)
    loss, weights = undisturbed.values[0]
    print(f"undisturbed: {STEPS} steps, final loss {loss:.6f}, {undisturbed.seconds:.1f} s", flush=True)
    lost, same = [], 0
    for number in range(given.runs):
        saving = draw.random() < 0.2
        kill = Kill(0 if saving else draw.randrange(RANKS), draw.randrange(STEPS - EVERY), saving=saving)
        run = run_with_restarts(train, RANKS, kill=kill)
        lost.append(run.lost)
        same += all(value == (loss, weights) for value in run.values)
        how = "in the checkpoint after" if saving else "at"
        print(
            f"{number}: rank {kill.rank} killed {how} step {kill.step}; {run.lost} steps again, final loss "
            f"{run.values[0][0]:.6f}, {run.attempts} attempts, {run.seconds:.1f} s",
            flush=True,
        )
    name = f"a rank killed at a random step, {given.runs} runs, a checkpoint every {EVERY} steps"
    Figure(f"{name}: steps lost, most", max(lost), f"<= {EVERY}", None, max(lost) <= EVERY).print()
    Figure(
        f"{name}: steps lost, mean", statistics.mean(lost), f"<= {EVERY}", None, statistics.mean(lost) <= EVERY
    ).print()
    share = same / given.runs
    Figure(f"{name}: loss and weights equal to the undisturbed run's", share, "== 1", None, share == 1).print()


if __name__ == "__main__":
    main()
