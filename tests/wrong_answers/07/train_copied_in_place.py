"""the only checkpoint is half written, and cannot be read"""

import shutil

import torch
import torch.distributed as dist

from utils.runtime.jobs.faults import reached


def train(rank, folder, job, steps, every):
    path, done = folder / "checkpoint.pt", 0
    if path.exists():
        stored = torch.load(path)
        done = stored["done"]
        for name in ("model", "optimizer", "schedule"):
            getattr(job, name).load_state_dict(stored[name])
        place, random_state = stored["own"][rank]
        job.data.load_state_dict(place)
        torch.set_rng_state(random_state)
    for step in range(done, steps):
        reached(step)
        job.step(next(job.data))
        if (step + 1) % every == 0:
            own = [None] * dist.get_world_size()
            dist.all_gather_object(own, (job.data.state_dict(), torch.get_rng_state()))
            if rank == 0:
                state = {name: getattr(job, name).state_dict() for name in ("model", "optimizer", "schedule")}
                torch.save(state | {"done": step + 1, "own": own}, folder / "new.pt")
                shutil.copy(folder / "new.pt", path)
