"""your function returns nothing"""


def predict_bytes(job, strategy):
    pass
