"""your function returns a NoneType; it is to return the list of handles"""


def when_full(buckets, act):
    pass
