"""every pass of a ring has n - 1 steps"""


def predict_seconds(job, strategy):
    n, g, r = job.ranks, job.per_node, job.nodes
    rate = job.across if r > 1 else job.inside

    def ring(passes, size, ranks=n, rate=rate):
        return passes * (ranks - 1) / ranks * size / rate + (ranks - 1) * job.latency

    compute = 3 * sum(job.forward)
    if strategy == "ddp":
        ready = done = sum(job.forward)
        for size, t in list(zip(job.sizes, job.forward, strict=True))[::-1]:
            ready += 2 * t
            done = max(done, ready) + ring(2, size)
        return done
    if strategy == "zero1":
        return compute + sum(ring(2, size) for size in job.sizes)
    if strategy == "fsdp":
        return compute + sum(ring(3, size) for size in job.sizes)
    inside = sum(ring(3, size, g, job.inside) for size in job.sizes)
    across = sum(2 * (r - 1) / r * size / job.across + (r - 1) * job.latency for size in job.sizes)
    return compute + inside + across
