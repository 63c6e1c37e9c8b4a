"""is never called, though bucket 1 is full"""

from functools import partial


def when_full(buckets, act):
    missing, turn = [len(bucket) for bucket in buckets], [0]

    def hook(number, parameter):
        missing[number] -= 1
        if turn[0] < len(buckets) and missing[turn[0]] == 0:
            act(turn[0])
            turn[0] += 1

    return [
        parameter.register_post_accumulate_grad_hook(partial(hook, number))
        for number, bucket in enumerate(buckets)
        for parameter in bucket
    ]
