"""the loss that rank 0 returns is its own shard's"""


def train_step(model, optimizer, loss_fn, inputs, targets):
    optimizer.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    average_gradients(model)
    optimizer.step()
    return loss.item()
