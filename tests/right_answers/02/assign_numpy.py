"""Positions are numpy integers."""

import numpy as np


def assign_buckets(sizes, cap):
    buckets, filling, held = [], [], 0
    for i in np.arange(len(sizes))[::-1]:
        filling.append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append(filling)
            filling, held = [], 0
    return [*buckets, filling] if filling else buckets
