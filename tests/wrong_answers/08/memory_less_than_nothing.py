"""your function returns -1; a rank holds more than 0 bytes"""


def predict_memory(job, strategy):
    return -1
