"""the sum is returned, but the tensor still holds other numbers"""


def all_reduce_ring(tensor):
    out = tensor.clone()
    all_gather_ring(out, reduce_scatter_ring(out))
    return out
