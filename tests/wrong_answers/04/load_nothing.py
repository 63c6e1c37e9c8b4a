"""are still those of the fresh model: they are not loaded"""


def load(checkpoint, buckets, optimizer):
    pass
