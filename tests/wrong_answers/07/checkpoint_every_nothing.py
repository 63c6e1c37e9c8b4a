"""your function returns nothing"""


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    pass
