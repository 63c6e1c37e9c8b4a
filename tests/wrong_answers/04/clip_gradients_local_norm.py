"""the gradients are clipped by the local norm"""

import torch


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)

    optimizer.register_step_pre_hook(clip)
