"""your function returns nothing; it is to return the function `step`"""


def mixed_precision(model, make_optimizer):
    masters = [p.detach().float() for p in model.parameters()]
    make_optimizer(masters).step()
