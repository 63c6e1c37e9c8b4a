"""the last bucket, which does not reach its cap, is forgotten"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in reversed(range(len(sizes))):
        filling.append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append(filling)
            filling, held = [], 0
    return buckets
