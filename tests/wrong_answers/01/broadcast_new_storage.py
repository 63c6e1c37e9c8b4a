"""lies in other memory than before on rank 0: `t.data = …`"""

import torch.distributed as dist


def broadcast_model(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        new = tensor.detach().clone()
        dist.broadcast(new, src=0)
        tensor.data = new
