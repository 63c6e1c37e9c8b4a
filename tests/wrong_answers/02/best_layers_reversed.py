"""`simulate_step` takes `layers` as they are"""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    layers = list(reversed(layers))
    return min(sizes, key=lambda size: simulate_step(layers, world_size, link, bucket_bytes=size).seconds)
