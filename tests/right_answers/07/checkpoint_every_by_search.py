"""All numbers of steps tried, in powers and then around the best."""


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    failure = 3600 * gpu_hours / gpus

    def lost(every):
        interval = every * step_seconds
        return write_seconds / interval + interval / 2 / failure

    every = 1
    while lost(every + 1) < lost(every):
        every += 1
    return every, lost(every) + restart_seconds / failure
