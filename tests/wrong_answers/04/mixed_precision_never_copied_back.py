"""the model's weights do not move"""


def mixed_precision(model, make_optimizer):
    trained = [p for p in model.parameters() if p.requires_grad]
    masters = [p.detach().float() for p in trained]
    optimizer = make_optimizer(masters)

    def step():
        for p, master in zip(trained, masters, strict=True):
            if p.grad is not None:
                master.grad, p.grad = p.grad.float(), None
        optimizer.step()
        optimizer.zero_grad()

    return step
