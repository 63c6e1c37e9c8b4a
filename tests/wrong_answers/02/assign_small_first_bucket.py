"""a cap of your own holds for the first too"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in reversed(range(len(sizes))):
        filling.append(i)
        held += sizes[i]
        if held >= (cap if buckets else min(cap, 2**20)):
            buckets.append(filling)
            filling, held = [], 0
    return [*buckets, filling] if filling else buckets
