"""your function says nothing"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    order = random.Random(epoch).sample(shards, len(shards))
    whole = len(shards) // readers * readers
    return order[:whole][rank * workers + worker :: readers]
