"""A loop over the sizes."""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    best, shortest = None, None
    for size in sizes:
        seconds = simulate_step(layers, world_size, link, "ddp", bucket_bytes=size).seconds
        if shortest is None or seconds < shortest:
            best, shortest = size, seconds
    return best
