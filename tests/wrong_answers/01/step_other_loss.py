"""the gradients are those of the mean squared error"""

import torch.distributed as dist
from torch.nn.functional import mse_loss


def train_step(model, optimizer, loss_fn, inputs, targets):
    optimizer.zero_grad()
    loss = mse_loss(model(inputs), targets)
    loss.backward()
    average_gradients(model)
    optimizer.step()
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    return mean_loss.item() / dist.get_world_size()
