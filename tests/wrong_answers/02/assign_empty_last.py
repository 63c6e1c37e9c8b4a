"""one of yours is empty"""


def assign_buckets(sizes, cap):
    buckets, held = [[]], 0
    for i in reversed(range(len(sizes))):
        buckets[-1].append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append([])
            held = 0
    return buckets
