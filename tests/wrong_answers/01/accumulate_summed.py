"""the micro-batches are summed, not averaged: divide each loss by their number: every one is 3.0"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        loss_fn(model(inputs), targets).backward()
    average_gradients(model)
    optimizer.step()
