"""Sorted by whether it is close, then by its place."""

from utils.checks.lab08.job import STRATEGIES


def recommend(job, memory):
    rows = [
        (predict_seconds(job, s), place, s) for place, s in enumerate(STRATEGIES) if predict_memory(job, s) <= memory
    ]
    if not rows:
        return None
    least = min(rows)[0]
    return min((place, s) for seconds, place, s in rows if seconds <= 1.05 * least)[1]
