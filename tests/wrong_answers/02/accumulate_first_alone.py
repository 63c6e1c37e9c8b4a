"""only the first micro-batch is averaged, and those after it are added on each rank alone"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        if number == 1:
            finish = overlap(buckets)
        loss.backward()
        if number == 1:
            finish()
    optimizer.step()
