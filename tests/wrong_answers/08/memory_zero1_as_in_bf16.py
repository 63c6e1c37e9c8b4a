"""4Ψ + 12Ψ/N, as with bf16 weights and masters"""


def predict_memory(job, strategy):
    psi, n = sum(job.parameters), job.ranks
    return {"ddp": 16 * psi, "zero1": 4 * psi + 12 * psi / n, "fsdp": 16 * psi / n, "hsdp": 16 * psi / job.per_node}[
        strategy
    ]
