"""on rank 0 your function returns None"""


def save(buckets, optimizer):
    pass
