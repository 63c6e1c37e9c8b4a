"""every gradient has a bucket of its own"""


def assign_buckets(sizes, cap):
    return [[i] for i in reversed(range(len(sizes)))]
