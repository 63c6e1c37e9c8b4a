"""a `DistributedDataParallel` is made inside the function"""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train_step(model, optimizer, loss_fn, inputs, targets):
    optimizer.zero_grad()
    loss = loss_fn(DistributedDataParallel(model)(inputs), targets)
    loss.backward()
    optimizer.step()
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    return mean_loss.item() / dist.get_world_size()
