"""your function returns one list several times"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in reversed(range(len(sizes))):
        filling.append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append(filling)
            filling.clear()
            held = 0
    if filling:
        buckets.append(filling)
    return buckets
