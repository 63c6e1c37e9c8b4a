"""Each weight becomes a new tensor: its master, rounded."""


def mixed_precision(model, make_optimizer):
    parameters = [p for p in model.parameters() if p.requires_grad]
    masters = [p.detach().float().clone() for p in parameters]
    optimizer = make_optimizer(masters)

    def step():
        for p, master in zip(parameters, masters, strict=True):
            master.grad = None if p.grad is None else p.grad.float()
            p.grad = None
        optimizer.step()
        optimizer.zero_grad()
        for p, master in zip(parameters, masters, strict=True):
            p.data = master.to(p.dtype)

    return step
