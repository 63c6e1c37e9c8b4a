"""return a pair: what a rank sends"""


def predict_bytes(job, strategy):
    return 2 * (job.ranks - 1) / job.ranks * sum(job.sizes)
