"""your function returns the step's seconds"""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    return min(simulate_step(layers, world_size, link, bucket_bytes=size).seconds for size in sizes)
