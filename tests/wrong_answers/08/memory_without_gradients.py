"""the gradients are left out"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    return {"ddp": 12 * psi, "zero1": 4 * psi + 8 * psi / n, "fsdp": 12 * psi / n, "hsdp": 12 * psi / job.per_node}[
        strategy
    ]
