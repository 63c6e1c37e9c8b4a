"""return the pair `(every, lost)`"""


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    failure = 3600 * gpu_hours / gpus
    every = max(1, round((2 * write_seconds * failure) ** 0.5 / step_seconds))
    return every
