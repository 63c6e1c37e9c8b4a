"""`act` is never called: is a hook registered on every parameter"""


def when_full(buckets, act):
    return []
