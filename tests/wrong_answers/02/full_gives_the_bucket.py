"""`act` is given a list; it takes the number of a bucket"""

from functools import partial


def when_full(buckets, act):
    missing, turn = [len(bucket) for bucket in buckets], [0]

    def hook(number, parameter):
        missing[number] -= 1
        while turn[0] < len(buckets) and missing[turn[0]] == 0:
            act(buckets[turn[0]])
            turn[0] += 1

    return [
        parameter.register_post_accumulate_grad_hook(partial(hook, number))
        for number, bucket in enumerate(buckets)
        for parameter in bucket
    ]
