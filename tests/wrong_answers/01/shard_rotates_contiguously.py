"""only moved along"""


def shard_indices(num_samples, rank, world_size, epoch):
    order = [(i + 31 * epoch) % num_samples for i in range(num_samples)]
    return order[rank * num_samples // world_size : (rank + 1) * num_samples // world_size]
