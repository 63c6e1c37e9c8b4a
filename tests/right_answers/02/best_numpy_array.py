"""A numpy integer of the array of sizes."""

import numpy as np

from utils.theory.step_time import simulate_step


def best_bucket_size(layers, world_size, link, sizes):
    return np.array(sizes)[
        np.argmin([simulate_step(layers, world_size, link, bucket_bytes=size).seconds for size in sizes])
    ]
