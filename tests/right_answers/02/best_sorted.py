"""Sorted by time."""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    return sorted((simulate_step(layers, world_size, link, bucket_bytes=size).seconds, size) for size in sizes)[0][1]
