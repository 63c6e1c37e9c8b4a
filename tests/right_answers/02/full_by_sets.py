"""Sets of what is missing, and a queue of buckets that wait for their turn."""

from collections import deque


def when_full(buckets, act):
    missing = deque((number, {id(p) for p in bucket}) for number, bucket in enumerate(buckets))

    def hook(parameter):
        for _, ids in missing:
            ids.discard(id(parameter))
        while missing and not missing[0][1]:
            act(missing.popleft()[0])

    return tuple(p.register_post_accumulate_grad_hook(hook) for bucket in buckets for p in bucket)
