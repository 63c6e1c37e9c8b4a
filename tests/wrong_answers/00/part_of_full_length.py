"""in `reduce_scatter_single(output, input)` the output needs 1/N of the input's elements"""

from utils import all_gather_single, reduce_scatter_single


def all_reduce(tensor):
    part = tensor.new_empty(len(tensor))
    reduce_scatter_single(part, tensor)
    all_gather_single(tensor, part)
