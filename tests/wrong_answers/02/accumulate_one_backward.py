"""graphs are alive at once"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    losses = [loss_fn(model(inputs), targets) for inputs, targets in micro_batches]
    finish = overlap(buckets)
    (sum(losses) / len(losses)).backward()
    finish()
    optimizer.step()
