"""your function returns None"""


def shard(parameters, rank, world_size):
    return None
