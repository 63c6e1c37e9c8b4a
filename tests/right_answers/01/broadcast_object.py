"""The state dict and the buffers that it leaves out travel as one object."""

import torch
import torch.distributed as dist


def broadcast_model(model):
    box = [(model.state_dict(), dict(model.named_buffers())) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    state, buffers = box[0]
    model.load_state_dict(state)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
