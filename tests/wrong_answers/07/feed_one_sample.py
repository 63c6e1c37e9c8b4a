"""the rate is that of one sample in a step"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * sample_bytes
    return loaded / compute, max(compute, loaded / store)
