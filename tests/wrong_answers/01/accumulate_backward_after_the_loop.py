"""does `backward` stand outside the loop?"""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
    loss.backward()
    average_gradients(model)
    optimizer.step()
