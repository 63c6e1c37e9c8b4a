"""one sentence with both numbers, 5 and 6"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) < readers:
        raise ValueError(len(shards), readers)
    order = random.Random(epoch).sample(shards, len(shards))
    return order[: len(shards) // readers * readers][rank * workers + worker :: readers]
