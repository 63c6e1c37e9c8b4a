"""the buckets come in forward order: the one that is full first is the first"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in reversed(range(len(sizes))):
        filling.append(i)
        held += sizes[i]
        if held >= cap:
            buckets.insert(0, filling)
            filling, held = [], 0
    return [filling, *buckets] if filling else buckets
