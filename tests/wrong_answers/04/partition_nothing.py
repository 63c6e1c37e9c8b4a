"""your function returns None"""


def partition(parameters, rank, world_size):
    pass
