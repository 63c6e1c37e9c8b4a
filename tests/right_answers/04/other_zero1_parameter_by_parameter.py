"""Every parameter is padded and sliced by itself, as FSDP2 does; the model keeps its own tensors."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def padded(tensor):
        return torch.nn.functional.pad(tensor.flatten(), (0, -tensor.numel() % ranks))

    trained = [p for bucket in buckets for p in bucket]
    masters = [padded(p.detach()).chunk(ranks)[rank].clone().float() for p in trained]
    optimizer = make_optimizer(masters)

    def step():
        for p, master in zip(trained, masters, strict=True):
            whole = padded(torch.zeros_like(p) if p.grad is None else p.grad)
            p.grad = None
            mine = whole.new_empty(master.shape)
            reduce_scatter_single(mine, whole, op=dist.ReduceOp.AVG)
            master.grad = mine.float()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for p, master in zip(trained, masters, strict=True):
            whole = p.new_empty(ranks * master.numel(), requires_grad=False)
            all_gather_single(whole, master.to(p.dtype))
            p.data.copy_(whole[: p.numel()].view_as(p))

    return step
