"""your function does no step"""


def train(rank, folder, job, steps, every):
    pass
