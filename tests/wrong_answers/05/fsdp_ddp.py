"""torch's DistributedDataParallel does the work"""

from torch import nn
from torch.nn.parallel import DistributedDataParallel


def fsdp(units, make_optimizer):
    for unit in units:
        if any(p.requires_grad for p in unit.parameters()):
            wrapped = DistributedDataParallel(nn.Sequential(*unit.children()) if len(list(unit.children())) else unit)
            unit.wrapped = [wrapped]
    optimizer = make_optimizer([p for unit in units for p in unit.parameters() if p.requires_grad])

    def step():
        optimizer.step()
        optimizer.zero_grad()

    return step
