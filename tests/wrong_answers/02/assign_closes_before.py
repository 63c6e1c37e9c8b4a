"""a bucket closes before it would exceed the cap"""


def assign_buckets(sizes, cap):
    buckets, held = [], 0
    for i in reversed(range(len(sizes))):
        if buckets and held + sizes[i] <= cap:
            buckets[-1].append(i)
            held += sizes[i]
        else:
            buckets.append([i])
            held = sizes[i]
    return buckets
