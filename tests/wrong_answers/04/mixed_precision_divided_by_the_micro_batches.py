"""each loss is divided already"""


def mixed_precision(model, make_optimizer):
    trained = [p for p in model.parameters() if p.requires_grad]
    masters = [p.detach().float().clone() for p in trained]
    optimizer = make_optimizer(masters)
    backwards = dict.fromkeys(trained, 0)

    def count(p):
        backwards[p] += 1

    for p in trained:
        p.register_post_accumulate_grad_hook(count)

    def step():
        for p, master in zip(trained, masters, strict=True):
            if p.grad is not None:
                master.grad, p.grad = p.grad.float() / backwards[p], None
            backwards[p] = 0
        optimizer.step()
        optimizer.zero_grad()
        for p, master in zip(trained, masters, strict=True):
            p.data.copy_(master)

    return step
