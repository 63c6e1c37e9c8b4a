"""busbw from the bytes that a rank sends."""


def bandwidths(kind, total_bytes, world_size, seconds):
    if kind == "broadcast":
        sent = total_bytes
    else:
        sent = (1 + (kind == "all_reduce")) * total_bytes * (world_size - 1) / world_size
    return [total_bytes / seconds / 1e9, sent / seconds / 1e9]
