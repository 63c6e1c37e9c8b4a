"""the ranks issue their collectives in different orders"""

import torch.distributed as dist


def average_gradients(model):
    parameters = [p for p in model.parameters() if p.grad is not None]
    for parameter in parameters if dist.get_rank() % 2 == 0 else reversed(parameters):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
