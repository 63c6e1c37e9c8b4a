"""or does the loop end before position 0?"""


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in range(len(sizes) - 1, 0, -1):
        filling.append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append(filling)
            filling, held = [], 0
    return [*buckets, filling] if filling else buckets
