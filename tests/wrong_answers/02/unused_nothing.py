"""your function returns a NoneType"""


def overlap_unused(buckets):
    pass
