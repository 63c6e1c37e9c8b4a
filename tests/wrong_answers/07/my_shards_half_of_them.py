"""each reader gets 1 shards, and there are 3"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) < readers:
        raise ValueError(f"{len(shards)} shards are too few for {readers} readers")
    order = random.Random(epoch).sample(shards, len(shards))
    return order[:readers][rank * workers + worker :: readers]
