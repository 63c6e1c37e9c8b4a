"""must have the same dtype"""


def mixed_precision(model, make_optimizer):
    model.float()
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad])

    def step():
        optimizer.step()
        optimizer.zero_grad()

    return step
