"""each bucket begins with what the one before it held above the cap"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in reversed(range(len(sizes))):
        filling.append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append(filling)
            filling, held = [], held - cap
    return [*buckets, filling] if filling else buckets
