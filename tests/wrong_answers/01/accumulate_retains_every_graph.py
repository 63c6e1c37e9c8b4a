"""2 micro-batches whose backward has run still hold the memory of a graph in a later forward: `retain_graph=True`"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    total = 0
    for inputs, targets in micro_batches:
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        loss.backward(retain_graph=True)
        total = total + loss
    average_gradients(model)
    optimizer.step()
