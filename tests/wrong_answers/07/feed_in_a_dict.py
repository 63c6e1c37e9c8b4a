"""your function returns a dict"""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    compute = 6 * parameters * tokens * batch / flops
    loaded = gpus * batch * sample_bytes
    return {loaded / compute: "B/s", max(compute, loaded / store): "s"}
