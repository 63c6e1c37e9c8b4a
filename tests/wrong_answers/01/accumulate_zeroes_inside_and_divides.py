"""only the last micro-batch's gradients are left, and are divided by 3"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    for inputs, targets in micro_batches:
        optimizer.zero_grad()
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    average_gradients(model)
    optimizer.step()
