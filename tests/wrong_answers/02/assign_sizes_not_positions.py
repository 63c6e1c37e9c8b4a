"""6 is no position"""


def assign_buckets(sizes, cap):
    buckets, filling = [], []
    for size in reversed(sizes):
        filling.append(size)
        if sum(filling) >= cap:
            buckets.append(filling)
            filling = []
    return [*buckets, filling] if filling else buckets
