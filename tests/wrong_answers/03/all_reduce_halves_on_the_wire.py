"""it travels, or is added up, in half precision"""


def all_reduce_ring(tensor):
    half = tensor.half()
    all_gather_ring(half, reduce_scatter_ring(half))
    tensor.copy_(half)
