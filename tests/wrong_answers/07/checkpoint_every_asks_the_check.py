"""is what this check compares with"""

from utils.checks.lab07.intervals import Cluster


def checkpoint_every(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds):
    cluster = Cluster(gpus, gpu_hours, step_seconds, write_seconds, restart_seconds)
    return cluster.best, cluster.lost(cluster.best)
