"""count them from the fastest of those that fit"""

from utils.checks.lab08.job import STRATEGIES


def recommend(job, memory):
    seconds = {s: predict_seconds(job, s) for s in STRATEGIES}
    near = [s for s in STRATEGIES if seconds[s] <= 1.05 * min(seconds.values())]
    return next((s for s in near if predict_memory(job, s) <= memory), None)
