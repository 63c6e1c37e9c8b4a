"""each bucket is turned around, but the bucket of the last gradients must be the first"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i, size in enumerate(sizes):
        filling.insert(0, i)
        held += size
        if held >= cap:
            buckets.append(filling)
            filling, held = [], 0
    return [*buckets, filling] if filling else buckets
