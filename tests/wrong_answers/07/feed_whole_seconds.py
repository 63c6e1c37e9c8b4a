"""the loading is cut to whole seconds"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return loaded / compute, max(compute, loaded // store)
