"""not divided by it"""


def bandwidths(kind, total_bytes, world_size, seconds):
    once = (world_size - 1) / world_size
    factors = {"all_reduce": 2 * once, "all_gather": once, "reduce_scatter": once, "broadcast": 1}
    algbw = total_bytes / seconds / 1e9
    return algbw, algbw / factors[kind]
