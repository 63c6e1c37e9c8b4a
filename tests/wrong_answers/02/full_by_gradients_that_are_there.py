"""A `.grad` that is not None may be an earlier micro-batch's"""


def when_full(buckets, act):
    turn = [0]

    def hook(parameter):
        while turn[0] < len(buckets) and all(p.grad is not None for p in buckets[turn[0]]):
            act(turn[0])
            turn[0] += 1

    return [p.register_post_accumulate_grad_hook(hook) for bucket in buckets for p in bucket]
