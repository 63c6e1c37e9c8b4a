"""your function returns nothing"""


def predict_memory(job, strategy):
    pass
