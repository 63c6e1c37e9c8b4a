"""they must go out as 0, 1, 2, … on every rank"""


def when_full(buckets, act):
    return [
        bucket[-1].register_post_accumulate_grad_hook(lambda _, number=number: act(number))
        for number, bucket in enumerate(buckets)
    ]
