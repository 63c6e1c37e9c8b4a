"""the rate is in bits per second"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return 8 * loaded / compute, max(compute, loaded / store)
