"""your function returns nothing"""


def prefetch(units, make_optimizer):
    pass
