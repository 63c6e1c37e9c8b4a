"""FSDP's states are shared out among all N ranks"""


def predict_memory(job, strategy):
    psi, n, g = sum(job.parameters), job.ranks, job.per_node
    return {"ddp": 16, "zero1": 8 + 8 / n, "fsdp": 16 / g, "hsdp": 16 / g}[strategy] * psi
