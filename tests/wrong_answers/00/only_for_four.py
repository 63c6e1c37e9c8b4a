"""on 2 ranks: the sizes do not fit"""

from utils import all_gather_single, reduce_scatter_single


def all_reduce(tensor):
    part = tensor.new_empty(len(tensor) // 4)
    reduce_scatter_single(part, tensor)
    all_gather_single(tensor, part)
