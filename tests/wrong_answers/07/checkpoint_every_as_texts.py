"""your function returns the values ("""


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    between_failures = 3600 * gpu_hours / gpus
    every = max(1, round((2 * write_seconds * between_failures) ** 0.5 / step_seconds))
    interval = every * step_seconds
    lost = write_seconds / interval + (interval / 2 + restart_seconds) / between_failures
    return str(every), f"{lost:.6f}"
