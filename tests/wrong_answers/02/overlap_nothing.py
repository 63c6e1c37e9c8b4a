"""your function returns a NoneType; it is to return the function `finish`"""


def overlap(buckets):
    pass
