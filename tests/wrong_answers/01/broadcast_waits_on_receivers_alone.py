"""nobody waits for broadcast"""

import torch.distributed as dist


def broadcast_model(model):
    tensors = [tensor.detach() for tensor in [*model.parameters(), *model.buffers()]]
    works = [dist.broadcast(tensor, src=0, async_op=True) for tensor in tensors]
    if dist.get_rank() != 0:
        for work in works:
            work.wait()
