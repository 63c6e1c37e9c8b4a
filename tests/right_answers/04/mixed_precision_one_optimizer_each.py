"""A class, and an optimizer for each master."""

import torch


class Step:
    def __init__(self, model, make_optimizer):
        self.triples = []
        for p in model.parameters():
            if p.requires_grad:
                master = torch.nn.Parameter(p.detach().float())
                self.triples.append((p, master, make_optimizer([master])))

    @torch.no_grad()
    def __call__(self):
        for p, master, optimizer in self.triples:
            if p.grad is not None:
                master.grad, p.grad = p.grad.to(master.dtype), None
                optimizer.step()
                master.grad = None
                p.copy_(master)


def mixed_precision(model, make_optimizer):
    return Step(model, make_optimizer)
