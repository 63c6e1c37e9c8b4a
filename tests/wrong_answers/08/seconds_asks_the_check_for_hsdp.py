"""`two_levels` is what this check compares with"""

from utils.checks.lab08 import timing


def predict_seconds(job, strategy):
    if strategy == "hsdp":
        return timing.two_levels(job)
    return 1.0
