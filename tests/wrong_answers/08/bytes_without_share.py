"""a rank never sends its own part to itself"""


def predict_bytes(job, strategy):
    g, r, size = job.per_node, job.nodes, sum(job.sizes)
    if strategy == "hsdp":
        return 3 * size + 2 * size / g, 2 * size if r > 1 else 0
    moved = {"ddp": 2 * size, "zero1": 2 * size, "fsdp": 3 * size}[strategy]
    return moved, moved if r > 1 else 0
