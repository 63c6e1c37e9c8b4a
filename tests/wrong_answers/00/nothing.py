"""nothing happened"""


def all_reduce(tensor):
    return tensor
