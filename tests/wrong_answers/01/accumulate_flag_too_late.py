"""the ranks never communicate"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    synchronise = False
    for number, (inputs, targets) in enumerate(micro_batches):
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
        if synchronise:
            average_gradients(model)
        synchronise = number == len(micro_batches) - 1
    optimizer.step()
