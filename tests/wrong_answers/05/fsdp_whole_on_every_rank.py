"""full masters and moments on each of 2 ranks"""

import torch.distributed as dist


def fsdp(units, make_optimizer):
    trained = [p for unit in units for p in unit.parameters() if p.requires_grad]
    optimizer = make_optimizer(trained)

    def step():
        for p in trained:
            if p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        optimizer.step()
        optimizer.zero_grad()

    return step
