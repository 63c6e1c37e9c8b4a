"""only the first micro-batch's gradients are averaged and kept"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    finish = overlap(buckets)
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    finish()
    optimizer.step()
