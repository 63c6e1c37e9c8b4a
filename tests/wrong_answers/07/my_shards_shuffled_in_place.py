"""your function changes the list that it is given"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) < readers:
        raise ValueError(f"{len(shards)} shards are too few for {readers} readers")
    random.Random(epoch).shuffle(shards)
    whole = len(shards) // readers * readers
    return shards[:whole][rank * workers + worker :: readers]
