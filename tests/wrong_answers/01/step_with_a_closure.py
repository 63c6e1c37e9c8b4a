"""call `optimizer.step()` without a closure"""

import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    def closure():
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        average_gradients(model)
        return loss

    loss = optimizer.step(closure).detach()
    dist.all_reduce(loss)
    return loss.item() / dist.get_world_size()
