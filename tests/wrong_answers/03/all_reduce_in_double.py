"""messages are larger than a part of float32"""


def all_reduce_ring(tensor):
    wide = tensor.double() if tensor.is_floating_point() else tensor
    all_gather_ring(wide, reduce_scatter_ring(wide))
    tensor.copy_(wide)
