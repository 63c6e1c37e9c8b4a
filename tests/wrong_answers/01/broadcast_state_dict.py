"""the buffers are forgotten that are registered with `persistent=False`"""

import torch.distributed as dist


def broadcast_model(model):
    box = [model.state_dict() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    model.load_state_dict(box[0])
