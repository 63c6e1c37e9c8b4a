"""the master weights are rounded to bf16 each step"""


def mixed_precision(model, make_optimizer):
    trained = [p for p in model.parameters() if p.requires_grad]
    masters = [p.detach().float() for p in trained]
    optimizer = make_optimizer(masters)

    def step():
        for p, master in zip(trained, masters, strict=True):
            master.copy_(p.detach())
            if p.grad is not None:
                master.grad, p.grad = p.grad.float(), None
        optimizer.step()
        optimizer.zero_grad()
        for p, master in zip(trained, masters, strict=True):
            p.data.copy_(master)

    return step
