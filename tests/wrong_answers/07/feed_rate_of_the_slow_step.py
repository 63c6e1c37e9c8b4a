"""the rate is what the store gives now"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return loaded / max(compute, loaded / store), max(compute, loaded / store)
