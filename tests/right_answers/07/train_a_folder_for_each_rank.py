"""A folder for each rank, with a file for each checkpoint: the same names in all of them."""

import os

import torch
import torch.distributed as dist

from utils.runtime.jobs.faults import reached


def train(rank, folder, job, steps, every):
    parts = {"model": job.model, "optimizer": job.optimizer, "schedule": job.schedule, "data": job.data}
    mine = folder / f"rank-{rank}"
    mine.mkdir(exist_ok=True)
    there = [int(path.stem) for path in folder.glob("rank-*/*.pt")]
    done = max((n for n in there if there.count(n) == dist.get_world_size()), default=0)
    if done:
        stored = torch.load(mine / f"{done}.pt")
        torch.set_rng_state(stored.pop("random"))
        for name, state in stored.items():
            parts[name].load_state_dict(state)
    dist.barrier()  # nobody writes before all have looked
    for step in range(done, steps):
        reached(step)
        job.step(next(job.data))
        if (step + 1) % every == 0:
            stored = {name: part.state_dict() for name, part in parts.items()}
            torch.save(stored | {"random": torch.get_rng_state()}, mine / "unfinished")
            os.replace(mine / "unfinished", mine / f"{step + 1}.pt")
            dist.barrier()
