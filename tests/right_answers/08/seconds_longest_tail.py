"""DDP's step is the latest of: a bucket is ready, and it and all after it travel. As a tensor."""

import torch


def predict_seconds(job, strategy):
    def rings(steps, ranks, size, rate):
        return steps * (size / ranks / rate + job.latency)

    n, g, r = job.ranks, job.per_node, job.nodes
    rate = job.across if r > 1 else job.inside
    if strategy == "ddp":
        takes = torch.tensor([rings(2 * (n - 1), n, size, rate) for size in job.sizes[::-1]], dtype=torch.float64)
        ready = sum(job.forward) + 2 * torch.tensor(job.forward[::-1], dtype=torch.float64).cumsum(0)
        return (ready + takes.flip(0).cumsum(0).flip(0)).max()
    if strategy == "hsdp":
        waits = [rings(3 * (g - 1), g, s, job.inside) + rings(2 * (r - 1), r, s, job.across) for s in job.sizes]
    else:
        waits = [rings({"zero1": 2, "fsdp": 3}[strategy] * (n - 1), n, size, rate) for size in job.sizes]
    return torch.tensor(3 * sum(job.forward) + sum(waits), dtype=torch.float64)
