"""return bytes per second, not GB"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return loaded / compute / 1e9, max(compute, loaded / store)
