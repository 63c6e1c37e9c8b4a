"""`zero_grad` is missing"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    average_gradients(model)
    optimizer.step()
