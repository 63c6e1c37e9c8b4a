"""that of all ranks together"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    return (
        n
        * {"ddp": 16 * psi, "zero1": 8 * psi + 8 * psi / n, "fsdp": 16 * psi / n, "hsdp": 16 * psi / job.per_node}[
            strategy
        ]
    )
