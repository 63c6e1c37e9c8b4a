"""the rate is in samples per second"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return gpus * batch / compute, max(compute, loaded / store)
