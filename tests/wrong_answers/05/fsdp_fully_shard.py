"""torch's fully_shard does the work"""

from torch.distributed.fsdp import fully_shard


def fsdp(units, make_optimizer):
    for unit in units:
        fully_shard(unit, reshard_after_forward=True)
    trained = [p for unit in units for p in unit.parameters() if p.requires_grad]
    masters = [p.detach().to_local().float().clone() for p in trained]
    optimizer = make_optimizer(masters)

    def step():
        for p, master in zip(trained, masters, strict=True):
            if p.grad is not None:
                master.grad, p.grad = p.grad.to_local().float(), None
        optimizer.step()
        optimizer.zero_grad()
        for p, master in zip(trained, masters, strict=True):
            p.to_local().data.copy_(master)

    return step
