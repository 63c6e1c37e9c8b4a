"""`optimizer.step()` is never called"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    pass
