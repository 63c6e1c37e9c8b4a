"""call 2 all-reduces 2.0 times as many numbers as the first one: are hooks registered in each call"""

import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    ranks = dist.get_world_size()

    def average(parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= ranks

    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)
    optimizer.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    optimizer.step()
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    return mean_loss.item() / ranks
