"""Is `overlap(buckets)` called before the last backward"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    optimizer.step()
