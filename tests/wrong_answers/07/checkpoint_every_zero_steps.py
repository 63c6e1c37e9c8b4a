"""a checkpoint every 0 steps; 1 step is the least"""


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    failure = 3600 * gpu_hours / gpus
    interval = (2 * write_seconds * failure) ** 0.5
    return round(interval / step_seconds), write_seconds / interval + (interval / 2 + restart_seconds) / failure
