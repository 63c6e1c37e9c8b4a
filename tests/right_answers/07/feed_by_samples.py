"""Samples per second first; the batch cancels."""


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    samples = gpus * flops / (6 * parameters * tokens)
    needed = samples * sample_bytes
    return needed, gpus * batch / min(samples, store / sample_bytes)
