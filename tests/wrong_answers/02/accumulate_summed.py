"""the micro-batches are summed, not averaged"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = loss_fn(model(inputs), targets)
        if number == len(micro_batches):
            finish = overlap(buckets)
        loss.backward()
    finish()
    optimizer.step()
