"""the store is counted as if each GPU had one of its own"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return loaded / compute, max(compute, batch * sample_bytes / store)
