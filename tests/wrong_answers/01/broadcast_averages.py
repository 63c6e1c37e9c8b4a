"""the weights are averaged over the ranks"""

import torch.distributed as dist


def broadcast_model(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.detach())
        parameter.detach().div_(dist.get_world_size())
