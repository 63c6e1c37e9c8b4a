"""The step is stretched where the store is too slow."""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    seconds = 6 * parameters * tokens / flops * batch
    needed = sample_bytes * batch * gpus / seconds
    if needed > store:
        seconds *= needed / store
    return [needed, seconds]
