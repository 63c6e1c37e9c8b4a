"""only one receive is under way at a time"""


def all_reduce_pipelined(tensor, pieces):
    for piece in tensor.tensor_split(pieces):
        all_reduce_ring(piece)
