"""the last micro-batch is not averaged"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches):
        if number == len(micro_batches) - 1 and len(micro_batches) > 1:
            average_gradients(model)
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    if len(micro_batches) == 1:
        average_gradients(model)
    optimizer.step()
