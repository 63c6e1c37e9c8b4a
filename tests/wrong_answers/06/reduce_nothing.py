"""your function returns nothing"""


def reduce(gradient, shard_group, replica_group):
    pass
