"""is another Parameter object than before"""

import torch
import torch.distributed as dist


def broadcast_model(model):
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            copy = parameter.detach().clone()
            dist.broadcast(copy, src=0)
            setattr(module, name, torch.nn.Parameter(copy, requires_grad=parameter.requires_grad))
        for buffer in module.buffers(recurse=False):
            dist.broadcast(buffer, src=0)
