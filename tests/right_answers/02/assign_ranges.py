"""Slices of a range."""


def assign_buckets(sizes, cap):
    order = range(len(sizes) - 1, -1, -1)
    buckets, begin, held = [], 0, 0
    for end, i in enumerate(order, start=1):
        held += sizes[i]
        if held >= cap or end == len(order):
            buckets.append(order[begin:end])
            begin, held = end, 0
    return buckets
