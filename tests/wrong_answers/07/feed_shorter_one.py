"""the step is the shorter of compute and loading"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return loaded / compute, min(compute, loaded / store)
