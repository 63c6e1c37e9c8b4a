"""your function returns -1; a step takes more than 0 seconds"""


def predict_seconds(job, strategy):
    return -1
