"""Averages in hooks, which it removes."""

import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    ranks, works = dist.get_world_size(), []

    def send(parameter):
        works.append(dist.all_reduce(parameter.grad.div_(ranks), async_op=True))

    hooks = [p.register_post_accumulate_grad_hook(send) for p in model.parameters() if p.requires_grad]
    optimizer.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    for work in works:
        work.wait()
    for hook in hooks:
        hook.remove()
    optimizer.step()
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    return mean_loss.item() / ranks
