"""The loss travels while the optimizer steps."""

import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    optimizer.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    mean_loss = loss.detach() / dist.get_world_size()
    on_its_way = dist.all_reduce(mean_loss, async_op=True)
    average_gradients(model)
    optimizer.step()
    on_its_way.wait()
    return mean_loss.item()
