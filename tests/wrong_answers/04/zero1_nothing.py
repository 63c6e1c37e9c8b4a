"""no optimizer is made"""


def zero1(buckets, make_optimizer):
    return lambda: None
