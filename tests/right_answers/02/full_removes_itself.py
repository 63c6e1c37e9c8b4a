"""Hooks that remove themselves as they run."""


def when_full(buckets, act):
    where = {id(p): number for number, bucket in enumerate(buckets) for p in bucket}
    missing, turn, handles = [len(bucket) for bucket in buckets], 0, {}

    def hook(parameter):
        nonlocal turn
        handles[id(parameter)].remove()
        missing[where[id(parameter)]] -= 1
        while turn < len(buckets) and not missing[turn]:
            act(turn)
            turn += 1

    for bucket in buckets:
        for p in bucket:
            handles[id(p)] = p.register_post_accumulate_grad_hook(hook)
    return list(handles.values())
