"""positions are counted from the end"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i, size in enumerate(reversed(sizes)):
        filling.append(i)
        held += size
        if held >= cap:
            buckets.append(filling)
            filling, held = [], 0
    return [*buckets, filling] if filling else buckets
