"""Do not round"""


def bandwidths(kind, total_bytes, world_size, seconds):
    factor = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}.get(kind, 1)
    factor *= 1 if kind == "broadcast" else (world_size - 1) / world_size
    algbw = total_bytes / seconds / 1e9
    return round(algbw, 2), round(algbw * factor, 2)
