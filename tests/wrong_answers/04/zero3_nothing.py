"""no optimizer is made"""


def zero3(layers, make_optimizer):
    return lambda: None
