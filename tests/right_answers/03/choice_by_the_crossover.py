"""Compares S with the size at which both take the same time."""

import math


def ring_or_tree(total_bytes, world_size, alpha, beta):
    rounds = math.ceil(math.log2(world_size))
    saved = (world_size - 1 - rounds) * alpha
    more_per_byte = (rounds - (world_size - 1) / world_size) * beta
    if more_per_byte <= 0:
        return "tree"
    return "ring" if total_bytes > saved / more_per_byte else "tree"
