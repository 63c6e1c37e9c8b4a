"""is clipped by its own norm"""

import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        for p in optimizer.param_groups[0]["params"]:
            squares = p.new_zeros(()) if p.grad is None else p.grad.square().sum()
            dist.all_reduce(squares)
            if p.grad is not None and squares.sqrt() > max_norm:
                p.grad *= max_norm / squares.sqrt()

    optimizer.register_step_pre_hook(clip)
