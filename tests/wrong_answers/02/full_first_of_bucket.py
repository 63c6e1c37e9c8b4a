"""A bucket is full when every gradient in it is ready, whichever comes last"""


def when_full(buckets, act):
    return [
        bucket[0].register_post_accumulate_grad_hook(lambda _, number=number: act(number))
        for number, bucket in enumerate(buckets)
    ]
