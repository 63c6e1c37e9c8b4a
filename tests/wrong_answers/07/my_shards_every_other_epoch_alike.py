"""epochs 0 and 2 have the same order"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) < readers:
        raise ValueError(f"{len(shards)} shards are too few for {readers} readers")
    order = random.Random(epoch % 2).sample(shards, len(shards))
    return order[: len(shards) // readers * readers][rank * workers + worker :: readers]
