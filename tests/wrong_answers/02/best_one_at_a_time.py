"""two transfers at a time you choose"""

from utils.theory.sharing import Link
from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    link = Link(link.bytes_per_second, link.latency)
    return min(sizes, key=lambda size: simulate_step(layers, world_size, link, bucket_bytes=size).seconds)
