"""the factor of the collective is missing"""


def bandwidths(kind, total_bytes, world_size, seconds):
    algbw = total_bytes / seconds / 1e9
    return algbw, algbw
