"""the one that sends least is taken"""

from utils.checks.lab08.job import STRATEGIES


def recommend(job, memory):
    fitting = [s for s in STRATEGIES if predict_memory(job, s) <= memory]
    sent = {s: predict_bytes(job, s)[1] for s in fitting}
    return next((s for s in fitting if sent[s] <= 1.05 * min(sent.values())), None)
