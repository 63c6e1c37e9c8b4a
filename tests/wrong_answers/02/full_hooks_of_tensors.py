"""Do you register by `register_hook`?"""

from functools import partial


def when_full(buckets, act):
    missing, turn = [len(bucket) for bucket in buckets], [0]

    def hook(number, parameter):
        missing[number] -= 1
        while turn[0] < len(buckets) and missing[turn[0]] == 0:
            act(turn[0])
            turn[0] += 1

    return [
        parameter.register_hook(partial(hook, number)) for number, bucket in enumerate(buckets) for parameter in bucket
    ]
