"""your function returns a ndarray; return a word"""

import numpy as np

from utils.checks.lab08.job import STRATEGIES


def recommend(job, memory):
    fitting = [s for s in STRATEGIES if predict_memory(job, s) <= memory]
    least = min((predict_seconds(job, s) for s in fitting), default=0)
    return np.array([s for s in fitting if predict_seconds(job, s) <= 1.05 * least][:1])
