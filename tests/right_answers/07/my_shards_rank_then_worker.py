"""The rank's part first, then the worker's."""

import random


def my_shards(shards, epoch, rank, world_size, worker, workers):
    total, readers = len(shards), world_size * workers
    if total < readers:
        raise ValueError(f"{total} shards cannot be shared by {readers} readers")
    order = list(shards)
    random.Random(f"epoch {epoch}").shuffle(order)
    del order[total - total % readers :]
    of_rank = order[rank::world_size]
    return of_rank[worker::workers]
