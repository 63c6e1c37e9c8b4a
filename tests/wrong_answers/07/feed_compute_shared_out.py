"""the step is divided by the number of GPUs"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops / gpus
    loaded = gpus * batch * sample_bytes
    return loaded / compute, max(compute, loaded / store)
