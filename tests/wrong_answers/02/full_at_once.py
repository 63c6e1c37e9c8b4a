"""`act` is called before backward begins"""


def when_full(buckets, act):
    for number in range(len(buckets)):
        act(number)
    return []
