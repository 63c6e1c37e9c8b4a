"""times in one backward: a bucket is full only once"""


def when_full(buckets, act):
    missing = [len(bucket) for bucket in buckets]
    handles = []
    for number, bucket in enumerate(buckets):
        for parameter in bucket:

            def hook(_):  # `number` is the last bucket's by the time it runs
                missing[number] -= 1  # noqa: B023
                if missing[number] <= 0:  # noqa: B023
                    act(number)  # noqa: B023

            handles.append(parameter.register_post_accumulate_grad_hook(hook))
    return handles
