"""there is no reshuffle"""


def shard_indices(num_samples, rank, world_size, epoch):
    return list(range(rank, num_samples, world_size))
