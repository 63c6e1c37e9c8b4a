"""A future divides as soon as its sum has arrived; all of them are waited for at once."""

import torch
import torch.distributed as dist


def average_gradients(model):
    ranks, futures = dist.get_world_size(), []
    for gradient in [p.grad for p in model.parameters() if p.grad is not None]:
        future = dist.all_reduce(gradient, async_op=True).get_future()
        futures.append(future.then(lambda done: done.value()[0].div_(ranks)))
    torch.futures.wait_all(futures)
