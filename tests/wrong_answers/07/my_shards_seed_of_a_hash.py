"""`hash` of a text and the order of a set differ from process to process"""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers = world_size * workers
    if len(shards) < readers:
        raise ValueError(f"{len(shards)} shards are too few for {readers} readers: cut the data into more.")
    order = random.Random(hash(("e", epoch))).sample(shards, len(shards))
    whole = len(shards) // readers * readers
    return order[:whole][rank * workers + worker :: readers]
