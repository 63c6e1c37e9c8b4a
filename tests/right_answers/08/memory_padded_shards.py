"""Each unit's shards in whole numbers, the last one padded."""


def predict_memory(job, strategy):
    def share(count, ranks):
        return -(-count // ranks)

    n, g = job.ranks, job.per_node
    return sum(
        {"ddp": 16 * p, "zero1": 8 * p + 8 * share(p, n), "fsdp": 16 * share(p, n), "hsdp": 16 * share(p, g)}[strategy]
        for p in job.parameters
    )
