"""the step returns None"""


def train_step(model, optimizer, loss_fn, inputs, targets):
    optimizer.zero_grad()
    loss_fn(model(inputs), targets).backward()
    average_gradients(model)
    optimizer.step()
