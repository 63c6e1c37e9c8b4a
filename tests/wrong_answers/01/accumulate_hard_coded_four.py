"""each loss is divided by 4, where 3 micro-batches came"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / 4).backward()
    average_gradients(model)
    optimizer.step()
