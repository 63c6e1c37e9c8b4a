"""uses the tensor of all_reduce (line 9: `works = [dist.all_reduce(each, async_op=True) for each in gradients]`) before
its `.wait()`"""

import torch.distributed as dist


def average_gradients(model):
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    works = [dist.all_reduce(each, async_op=True) for each in gradients]
    for gradient in gradients:
        gradient /= dist.get_world_size()
    for work in works:
        work.wait()
