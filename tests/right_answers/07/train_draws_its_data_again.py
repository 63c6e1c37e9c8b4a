"""Draws as many batches again as were drawn before the death; a file for each checkpoint, written by the last rank."""

import torch
import torch.distributed as dist

from utils.runtime.jobs.faults import reached


def train(rank, folder, job, steps, every):
    done = max((int(path.stem) for path in folder.glob("*.pt")), default=0)
    if done:
        stored = torch.load(folder / f"{done}.pt")
        job.model.load_state_dict(stored["model"])
        job.optimizer.load_state_dict(stored["optimizer"])
        job.schedule.load_state_dict(stored["schedule"])
        for _ in range(done):
            next(job.data)
        torch.set_rng_state(stored["random"][rank])
    for step in range(done, steps):
        reached(step)
        job.step(next(job.data))
        if (step + 1) % every:
            continue
        states = [torch.empty_like(torch.get_rng_state()) for _ in range(dist.get_world_size())]
        dist.all_gather(states, torch.get_rng_state())
        if rank == len(states) - 1:
            parts = {name: getattr(job, name).state_dict() for name in ("model", "optimizer", "schedule")}
            torch.save(parts | {"random": states}, folder / "unfinished")
            (folder / "unfinished").rename(folder / f"{step + 1}.pt")
