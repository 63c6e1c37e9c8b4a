"""number by number"""


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        for p in optimizer.param_groups[0]["params"]:
            if p.grad is not None:
                p.grad.clamp_(-max_norm, max_norm)

    optimizer.register_step_pre_hook(clip)
