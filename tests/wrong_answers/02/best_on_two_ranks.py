"""for the same link, 8 ranks you choose"""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    return min(sizes, key=lambda size: simulate_step(layers, 2, link, bucket_bytes=size).seconds)
