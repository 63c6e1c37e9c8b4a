"""the gradients are scaled by"""

import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        p = optimizer.param_groups[0]["params"][0]
        squares = p.new_zeros(()) if p.grad is None else p.grad.square().sum()
        dist.all_reduce(squares)
        for p in optimizer.param_groups[0]["params"]:
            if p.grad is not None:
                p.grad *= min(1.0, max_norm / squares.sqrt())

    optimizer.register_step_pre_hook(clip)
