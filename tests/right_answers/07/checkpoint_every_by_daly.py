"""Daly's interval and his whole formula."""

from utils.theory.restarts import daly_interval, loss, mean_time_between_failures


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    failure = mean_time_between_failures(gpus, gpu_hours)
    every = max(1, round(daly_interval(write_seconds, failure) / step_seconds))
    return every, loss(every * step_seconds, write_seconds, failure, restart_seconds).lost
