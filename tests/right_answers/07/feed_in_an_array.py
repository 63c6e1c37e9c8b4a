"""By what one GPU eats; a NumPy array of two."""

import numpy as np


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    samples = flops / (6 * parameters * tokens)  # of one GPU, in a second
    eaten = gpus * sample_bytes * samples
    return np.array([eaten, batch / samples * max(1.0, eaten / store)])
