"""The step with the least exposed communication is the shortest: compute is the same."""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    exposed = [simulate_step(layers, world_size, link, bucket_bytes=size).exposed for size in sizes]
    return sizes[exposed.index(min(exposed))]
