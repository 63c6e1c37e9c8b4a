"""Issues all of them, then waits; last layer first."""

import torch.distributed as dist


def average_gradients(model):
    gradients = [p.grad for p in reversed(list(model.parameters())) if p.grad is not None]
    works = [dist.all_reduce(gradient, async_op=True) for gradient in gradients]
    for work, gradient in zip(works, gradients, strict=True):
        work.wait()
        gradient /= dist.get_world_size()
