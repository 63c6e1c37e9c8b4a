"""`zero_grad` is missing"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    pass
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        if number == len(micro_batches):
            finish = overlap(buckets)
        loss.backward()
    finish()
    optimizer.step()
