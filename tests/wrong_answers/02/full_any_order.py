"""they must go out as 0, 1, 2, … on every rank"""

from functools import partial


def when_full(buckets, act):
    missing = [len(bucket) for bucket in buckets]

    def hook(number, parameter):
        missing[number] -= 1
        if missing[number] == 0:
            act(number)

    return [
        parameter.register_post_accumulate_grad_hook(partial(hook, number))
        for number, bucket in enumerate(buckets)
        for parameter in bucket
    ]
