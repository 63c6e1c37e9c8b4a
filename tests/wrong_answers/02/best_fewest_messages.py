"""the first bucket must be full before anything overlaps"""

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    def communication(size):
        return simulate_step(layers, world_size, link, bucket_bytes=size).communication

    return size if communication(size := max(sizes)) < communication(min(sizes)) else min(sizes)
