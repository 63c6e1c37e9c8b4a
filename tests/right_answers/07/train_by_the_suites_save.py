"""The suite's own `save` and `load`, states gathered on rank 0."""

import torch
import torch.distributed as dist

from utils.runtime.jobs.checkpoints import load, save
from utils.runtime.jobs.faults import reached


def train(rank, folder, job, steps, every):
    stored = load(folder / "checkpoint")
    step = 0
    if stored:
        state, step = stored
        job.model.load_state_dict(state["model"])
        job.optimizer.load_state_dict(state["optimizer"])
        job.schedule.load_state_dict(state["schedule"])
        job.data.load_state_dict(state["data"][rank])
        torch.set_rng_state(state["random"][rank])
    while step < steps:
        reached(step)
        job.step(next(job.data))
        step += 1
        if step % every:
            continue
        gathered = [None] * dist.get_world_size() if rank == 0 else None
        dist.gather_object({"data": job.data.state_dict(), "random": torch.get_rng_state()}, gathered)
        if rank == 0:
            own = {name: [each[name] for each in gathered] for name in ("data", "random")}
            alike = {name: getattr(job, name).state_dict() for name in ("model", "optimizer", "schedule")}
            save(folder / "checkpoint", own | alike, step)
