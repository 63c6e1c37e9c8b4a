"""not among all N: every node holds a copy"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    return {"ddp": 16 * psi, "zero1": 8 * psi + 8 * psi / n}.get(strategy, 16 * psi / n)
