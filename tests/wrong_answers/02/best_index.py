"""0, which is none of the sizes"""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    seconds = [simulate_step(layers, world_size, link, bucket_bytes=size).seconds for size in sizes]
    return seconds.index(min(seconds))
