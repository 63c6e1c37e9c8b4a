"""the order depends on the process's random state"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) < readers:
        raise ValueError(f"{len(shards)} shards are too few for {readers} readers")
    order = random.sample(shards, len(shards))
    whole = len(shards) // readers * readers
    return order[:whole][rank * workers + worker :: readers]
