"""the weights are counted whole under FSDP and HSDP"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    shared = {"ddp": 0, "zero1": 8, "fsdp": 12, "hsdp": 12}[strategy]
    return (16 - shared) * psi + shared * psi / (job.per_node if strategy == "hsdp" else n)
