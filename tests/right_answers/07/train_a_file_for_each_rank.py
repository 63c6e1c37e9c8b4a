"""A folder for each checkpoint with a file for each rank; it counts when all are there."""

import os

import torch
import torch.distributed as dist

from utils.runtime.jobs.faults import reached


def train(rank, folder, job, steps, every):
    parts = {"model": job.model, "optimizer": job.optimizer, "schedule": job.schedule, "data": job.data}
    whole = [n for n in range(every, steps + 1, every) if len(list(folder.glob(f"{n}-*.pt"))) == dist.get_world_size()]
    done = max(whole, default=0)
    if done:
        stored = torch.load(folder / f"{done}-{rank}.pt")
        torch.set_rng_state(stored.pop("random"))
        for name, state in stored.items():
            parts[name].load_state_dict(state)
    dist.barrier()  # nobody writes before all have looked
    for step in range(done, steps):
        reached(step)
        job.step(next(job.data))
        if (step + 1) % every == 0:
            stored = {name: part.state_dict() for name, part in parts.items()}
            unfinished = folder / f"rank-{rank}.unfinished"
            torch.save(stored | {"random": torch.get_rng_state()}, unfinished)
            os.replace(unfinished, folder / f"{step + 1}-{rank}.pt")
            dist.barrier()
