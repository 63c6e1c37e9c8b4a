"""the arguments of the loss are swapped"""

import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    optimizer.zero_grad()
    loss = loss_fn(targets, model(inputs))
    loss.backward()
    average_gradients(model)
    optimizer.step()
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    return mean_loss.item() / dist.get_world_size()
