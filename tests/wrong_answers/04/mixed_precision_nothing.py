"""no optimizer is made"""


def mixed_precision(model, make_optimizer):
    return lambda: None
