"""only the last micro-batch's gradients are left"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    for inputs, targets in micro_batches:
        optimizer.zero_grad()
        loss_fn(model(inputs), targets).backward()
    average_gradients(model)
    optimizer.step()
