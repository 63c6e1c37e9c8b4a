"""`act` is still called in the next backward: return the handles of all hooks"""

from functools import partial


def when_full(buckets, act):
    total = [len(bucket) for bucket in buckets]
    ready, turn = [0] * len(buckets), [0]

    def hook(number, parameter):
        ready[number] += 1
        while turn[0] < len(buckets) and ready[turn[0]] >= total[turn[0]]:
            ready[turn[0]] -= total[turn[0]]
            act(turn[0])
            turn[0] += 1
        turn[0] %= len(buckets)  # for the next backward

    for number, bucket in enumerate(buckets):
        handles = [parameter.register_post_accumulate_grad_hook(partial(hook, number)) for parameter in bucket]
    return handles
