"""Returns a tensor, zeroes the gradients last, averages the loss with ReduceOp.AVG."""

import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    average_gradients(model)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    loss = loss.detach()
    dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    return loss
