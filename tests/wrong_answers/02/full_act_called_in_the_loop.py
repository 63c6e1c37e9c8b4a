"""`act` is called before backward begins"""


def when_full(buckets, act):
    return [
        parameter.register_post_accumulate_grad_hook(act(number))
        for number, bucket in enumerate(buckets)
        for parameter in bucket
    ]
