"""nothing is averaged: every rank still has the gradients of its own shard"""


def average_gradients(model):
    pass
