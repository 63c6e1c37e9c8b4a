"""One handle that removes all hooks."""


def when_full(buckets, act):
    missing, turn = [set(bucket) for bucket in buckets], [0]

    def hook(number):
        def ready(parameter):
            missing[number].remove(parameter)
            while turn[0] < len(buckets) and not missing[turn[0]]:
                act(turn[0])
                turn[0] += 1

        return ready

    handles = [p.register_post_accumulate_grad_hook(hook(n)) for n, bucket in enumerate(buckets) for p in bucket]

    class All:
        def remove(self):
            for handle in handles:
                handle.remove()

    return [All()]
