"""`sent` is what this check compares with"""

from utils.checks.lab08 import laws


def predict_bytes(job, strategy):
    return laws.sent(job, strategy)
