"""your function returns nothing"""


def my_shards(shards, epoch, rank, world_size, worker, workers):
    pass
