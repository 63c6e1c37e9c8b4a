"""a message holds 16 elements, where a part of 16 in 4 pieces"""


def all_reduce_pipelined(tensor, pieces):
    all_reduce_ring(tensor)
