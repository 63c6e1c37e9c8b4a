"""Do the masters keep their fp32 gradients"""


def mixed_precision(model, make_optimizer):
    masters = {p: p.detach().float() for p in model.parameters() if p.requires_grad}
    optimizer = make_optimizer(list(masters.values()))

    def give(p):
        master = masters[p]
        master.grad = p.grad.float() if master.grad is None else master.grad + p.grad
        p.grad = None

    for p in masters:
        p.register_post_accumulate_grad_hook(give)

    def step():
        optimizer.step()
        optimizer.zero_grad()
        for p, master in masters.items():
            p.data.copy_(master)

    return step
