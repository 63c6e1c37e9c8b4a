"""A table of formulas."""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    held = {"ddp": 16, "zero1": 8 + 8 / n, "fsdp": 16 / n, "hsdp": 16 / job.per_node}
    return held[strategy] * psi
