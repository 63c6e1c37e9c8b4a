"""no checkpoint is in the folder at the end"""

from utils.runtime.jobs.faults import reached


def train(rank, folder, job, steps, every):
    for step in range(steps):
        reached(step)
        job.step(next(job.data))
