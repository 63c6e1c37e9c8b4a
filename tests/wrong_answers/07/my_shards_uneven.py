"""when that one has no batch left, the others wait in their all-reduce for ever"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) < readers:
        raise ValueError(f"{len(shards)} shards are too few for {readers} readers")
    order = random.Random(epoch).sample(shards, len(shards))
    return order[rank * workers + worker :: readers]
