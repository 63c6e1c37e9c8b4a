"""call it in the hook that fills the bucket"""


def when_full(buckets, act):
    missing = [sum(len(bucket) for bucket in buckets)]

    def hook(parameter):
        missing[0] -= 1
        if missing[0] == 0:
            for number in range(len(buckets)):
                act(number)

    return [parameter.register_post_accumulate_grad_hook(hook) for bucket in buckets for parameter in bucket]
