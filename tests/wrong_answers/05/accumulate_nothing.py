"""your function returns nothing"""


def accumulate(units, make_optimizer):
    pass
