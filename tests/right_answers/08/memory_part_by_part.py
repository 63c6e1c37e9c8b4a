"""Weights, gradients and moments, each with its own divisor."""


def predict_memory(job, strategy):
    among = {"ddp": 1, "zero1": job.ranks, "fsdp": job.ranks, "hsdp": job.per_node}[strategy]
    model = among if strategy in ("fsdp", "hsdp") else 1
    total = 0.0
    for count in job.parameters:
        weights = gradients = 4 * count / model
        moments = 2 * 4 * count / among
        total += weights + gradients + moments
    return total
