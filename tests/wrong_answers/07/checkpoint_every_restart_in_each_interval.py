"""the share counts a restart with each checkpoint"""


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    between_failures = 3600 * gpu_hours / gpus
    every = max(1, round((2 * write_seconds * between_failures) ** 0.5 / step_seconds))
    interval = every * step_seconds
    return every, (write_seconds + restart_seconds) / interval + interval / 2 / between_failures
