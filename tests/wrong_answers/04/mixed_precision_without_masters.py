"""the optimizer works on the bf16 weights themselves"""


def mixed_precision(model, make_optimizer):
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad])

    def step():
        optimizer.step()
        optimizer.zero_grad()

    return step
