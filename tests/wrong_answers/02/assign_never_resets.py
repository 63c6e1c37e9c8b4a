"""the buckets are [[5, 4, 3], [2], [1], [0]], and should be"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in reversed(range(len(sizes))):
        filling.append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append(filling)
            filling = []
    return [*buckets, filling] if filling else buckets
