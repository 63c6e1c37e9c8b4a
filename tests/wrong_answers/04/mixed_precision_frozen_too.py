"""is frozen, and has changed"""


def mixed_precision(model, make_optimizer):
    everything = list(model.parameters())
    masters = [p.detach().float() for p in everything]
    optimizer = make_optimizer(masters)
    for p in everything:
        p.requires_grad_(True)

    def step():
        for p, master in zip(everything, masters, strict=True):
            if p.grad is not None:
                master.grad, p.grad = p.grad.float(), None
        optimizer.step()
        optimizer.zero_grad()
        for p, master in zip(everything, masters, strict=True):
            p.data.copy_(master)

    return step
