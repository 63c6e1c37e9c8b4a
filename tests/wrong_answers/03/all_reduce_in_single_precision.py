"""is rounded: it travels, or is added up, in a type that holds fewer digits"""


def all_reduce_ring(tensor):
    single = tensor.float() if tensor.element_size() >= 4 else tensor
    all_gather_ring(single, reduce_scatter_ring(single))
    tensor.copy_(single)
