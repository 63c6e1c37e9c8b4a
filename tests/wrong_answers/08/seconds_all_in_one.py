"""all units are counted as one collective"""


def predict_seconds(job, strategy):
    n, g, r = job.ranks, job.per_node, job.nodes
    rate = job.across if r > 1 else job.inside

    def ring(passes, size, ranks=n, rate=rate):
        return passes * ((ranks - 1) / ranks * size / rate + (ranks - 1) * job.latency)

    compute = 3 * sum(job.forward)
    if strategy == "ddp":
        return compute + ring(2, sum(job.sizes))
    if strategy == "zero1":
        return compute + ring(2, sum(job.sizes))
    if strategy == "fsdp":
        return compute + ring(3, sum(job.sizes))
    inside = ring(3, sum(job.sizes), g, job.inside)
    across = 2 * (r - 1) / r * sum(job.sizes) / job.across + 2 * (r - 1) * job.latency
    return compute + inside + across
