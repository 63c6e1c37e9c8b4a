"""your function returns a StepTraffic; return a pair"""

from utils.theory.traffic import step_bytes


def predict_bytes(job, strategy):
    group = job.per_node if strategy == "hsdp" else None
    return step_bytes(sum(job.parameters), strategy, job.ranks, group, job.nodes, 4)
