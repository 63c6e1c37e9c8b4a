"""A running size instead of a sum."""


def assign_buckets(sizes, cap):
    buckets, held = [], cap
    for i in range(len(sizes) - 1, -1, -1):
        if held >= cap:
            buckets.append([])
            held = 0
        buckets[-1].append(i)
        held += sizes[i]
    return buckets
