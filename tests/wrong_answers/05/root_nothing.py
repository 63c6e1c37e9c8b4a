"""your function returns nothing"""


def root(model, units, make_optimizer):
    pass
