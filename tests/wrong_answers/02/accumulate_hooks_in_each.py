"""micro-batches cost"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        finish = overlap(buckets)
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
        finish()
    optimizer.step()
