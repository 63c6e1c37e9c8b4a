"""the memory is not looked at"""

from utils.checks.lab08.job import STRATEGIES


def recommend(job, memory):
    seconds = {s: predict_seconds(job, s) for s in STRATEGIES}
    return next(s for s in STRATEGIES if seconds[s] <= 1.05 * min(seconds.values()))
