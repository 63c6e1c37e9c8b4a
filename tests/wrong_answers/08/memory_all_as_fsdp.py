"""every strategy is counted as FSDP, 16Ψ/N"""


def predict_memory(job, strategy):
    return 16 * sum(job.parameters) / job.ranks
