"""no optimizer is made"""


def zero2(buckets, make_optimizer):
    return lambda: None
