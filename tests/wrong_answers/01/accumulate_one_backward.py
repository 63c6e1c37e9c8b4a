"""all k graphs are alive at once: that needs the memory of the whole batch"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    loss = sum(loss_fn(model(inputs), targets) for inputs, targets in micro_batches) / len(micro_batches)
    loss.backward()
    average_gradients(model)
    optimizer.step()
