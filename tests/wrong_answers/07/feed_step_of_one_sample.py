"""the step is that of one sample"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens / flops
    loaded = gpus * batch * sample_bytes
    return loaded / compute, max(compute, loaded / store)
