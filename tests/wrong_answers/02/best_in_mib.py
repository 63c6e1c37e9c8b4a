"""does `simulate_step` get the link, and each size?"""

from utils.theory.step_time import simulate_step
from utils.theory.units import MiB


def best_bucket_size(layers, world_size, link, sizes):
    return min(sizes, key=lambda size: simulate_step(layers, world_size, link, bucket_bytes=size * MiB).seconds)
