"""the ranks all-reduce 144 numbers where the gradients are 72: once is enough"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    average_gradients(model)
    average_gradients(model)
    optimizer.step()
