"""Young's interval is rounded up"""

import math


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    failure = 3600 * gpu_hours / gpus
    every = math.ceil((2 * write_seconds * failure) ** 0.5 / step_seconds)
    interval = every * step_seconds
    return every, write_seconds / interval + (interval / 2 + restart_seconds) / failure
