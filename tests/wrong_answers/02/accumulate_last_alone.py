"""only the last micro-batch's gradients are left"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        if number == len(micro_batches):
            finish = overlap(buckets)
        loss.backward()
    finish()
    optimizer.step()
