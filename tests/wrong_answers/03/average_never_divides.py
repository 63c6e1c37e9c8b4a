"""the numbers are summed, and never divided: every one is 4 times too large"""


def average_ring(tensor):
    all_reduce_ring(tensor)
