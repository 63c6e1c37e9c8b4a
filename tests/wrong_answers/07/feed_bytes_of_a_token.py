"""those of a whole sample, not of a token"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes * tokens
    return loaded / compute, max(compute, loaded / store)
