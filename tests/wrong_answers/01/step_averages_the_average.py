"""the ranks all-reduce 145 numbers where the gradients are 72: once is enough"""

import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    optimizer.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    average_gradients(model)
    average_gradients(model)
    optimizer.step()
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    return mean_loss.item() / dist.get_world_size()
