"""your answer is 20 bytes for each number, and it holds 16"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    return {"ddp": 20, "zero1": 8 + 12 / n, "fsdp": 20 / n, "hsdp": 20 / job.per_node}[strategy] * psi
