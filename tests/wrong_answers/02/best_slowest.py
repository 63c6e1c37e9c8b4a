"""for every link you choose the size with the longest step"""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    return max(sizes, key=lambda size: simulate_step(layers, world_size, link, bucket_bytes=size).seconds)
