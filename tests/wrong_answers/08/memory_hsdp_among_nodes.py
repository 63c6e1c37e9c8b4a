"""a node has `per_node`"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    return {"ddp": 16, "zero1": 8 + 8 / n, "fsdp": 16 / n, "hsdp": 16 / job.nodes}[strategy] * psi
