"""nothing happened on rank 0"""


def average_ring(tensor):
    pass
