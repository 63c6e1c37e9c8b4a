"""One flag for each parameter."""


def when_full(buckets, act):
    ready, acted = {}, []

    def hook(parameter):
        ready[parameter] = True
        for number, bucket in enumerate(buckets):
            if not all(p in ready for p in bucket):
                break
            if number not in acted:
                acted.append(number)
                act(number)

    return [p.register_post_accumulate_grad_hook(hook) for bucket in buckets for p in bucket]
