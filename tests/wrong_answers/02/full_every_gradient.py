"""times in one backward: a bucket is full only once"""


def when_full(buckets, act):
    return [
        parameter.register_post_accumulate_grad_hook(lambda _, number=number: act(number))
        for number, bucket in enumerate(buckets)
        for parameter in bucket
    ]
