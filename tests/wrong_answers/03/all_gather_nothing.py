"""nothing arrived: rank 0's tensor is as it was"""


def all_gather_ring(tensor, part):
    return tensor
