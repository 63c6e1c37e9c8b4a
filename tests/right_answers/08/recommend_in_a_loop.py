"""A loop that keeps the best so far."""

from utils.checks.lab08.job import STRATEGIES


def recommend(job, memory):
    best, least = None, float("inf")
    for strategy in STRATEGIES:
        if predict_memory(job, strategy) <= memory:
            least = min(least, predict_seconds(job, strategy))
    for strategy in STRATEGIES:
        if predict_memory(job, strategy) <= memory and predict_seconds(job, strategy) / least <= 1.05:
            best = best or strategy
    return best
