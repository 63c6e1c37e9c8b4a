"""each comes one step late"""


def mixed_precision(model, make_optimizer):
    trained = [p for p in model.parameters() if p.requires_grad]
    masters = [p.detach().float().clone() for p in trained]
    optimizer = make_optimizer(masters)

    def step():
        for p, master in zip(trained, masters, strict=True):
            master.grad = None if p.grad is None else p.grad.float()
            p.grad = None
            p.data.copy_(master)
        optimizer.step()
        optimizer.zero_grad()

    return step
