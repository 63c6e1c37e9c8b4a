"""Keeps every loss and output to look at later; what their graphs saved is freed by the backward."""


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    kept = []
    for inputs, targets in micro_batches:
        outputs = model(inputs)
        loss = loss_fn(outputs, targets) / len(micro_batches)
        loss.backward()
        kept.append((outputs, loss))
    average_gradients(model)
    optimizer.step()
