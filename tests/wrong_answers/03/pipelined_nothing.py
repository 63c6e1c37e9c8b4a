"""nothing happened on rank 0"""


def all_reduce_pipelined(tensor, pieces):
    pass
