"""gradients are shared out: that is ZeRO-2"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    return {"ddp": 16, "zero1": 4 + 4 / n + 8 / n, "fsdp": 16 / n, "hsdp": 16 / job.per_node}[strategy] * psi
