"""at `optimizer.step()` each has its own gradients"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        if number == len(micro_batches):
            finish = overlap(buckets)
        loss.backward()
    optimizer.step()
    finish()
