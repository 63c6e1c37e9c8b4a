"""Each unit, each ring: a list, not a tuple."""


def predict_bytes(job, strategy):
    def passes(times, ranks, size):
        return times * (ranks - 1) * size / ranks

    mine = across = 0.0
    for size in job.sizes:
        if strategy == "hsdp":
            shard = passes(2, job.nodes, size / job.per_node)
            mine += passes(3, job.per_node, size) + shard
            across += job.per_node * shard
        else:
            sent = passes(3 if strategy == "fsdp" else 2, job.ranks, size)
            mine += sent
            across += sent * (job.nodes > 1)
    return [mine, across]
