"""A bucket is full when every gradient in it is ready, whichever comes last"""


def when_full(buckets, act):
    counted, turn = [0], [0]
    ends = [sum(len(bucket) for bucket in buckets[: number + 1]) for number in range(len(buckets))]

    def hook(parameter):
        counted[0] += 1
        while turn[0] < len(buckets) and counted[0] == ends[turn[0]]:
            act(turn[0])
            turn[0] += 1

    return [parameter.register_post_accumulate_grad_hook(hook) for bucket in buckets for parameter in bucket]
