"""nothing is all-reduced: every rank keeps the gradients of its own samples"""


def overlap(buckets):
    def finish():
        pass

    return finish
