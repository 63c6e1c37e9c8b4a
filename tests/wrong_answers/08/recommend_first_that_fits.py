"""the first that fits is taken, however slow"""

from utils.checks.lab08.job import STRATEGIES


def recommend(job, memory):
    return next((s for s in STRATEGIES if predict_memory(job, s) <= memory), None)
