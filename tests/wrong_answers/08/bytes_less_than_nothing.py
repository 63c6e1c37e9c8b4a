"""your function returns -5; 0 bytes or more are sent"""


def predict_bytes(job, strategy):
    return 1.0, -5
