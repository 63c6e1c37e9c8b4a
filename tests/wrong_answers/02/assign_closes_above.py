"""a bucket closes only when it is larger than the cap: to reach it is enough"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in reversed(range(len(sizes))):
        filling.append(i)
        held += sizes[i]
        if held > cap:
            buckets.append(filling)
            filling, held = [], 0
    return [*buckets, filling] if filling else buckets
