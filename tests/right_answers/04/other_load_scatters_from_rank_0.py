"""Rank 0 alone looks into the checkpoint's tensors, and scatters their slices; the weights are broadcast."""

import torch
import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for number, bucket in enumerate(buckets):
        master = optimizer.param_groups[0]["params"][number]
        length = master.numel()

        def mine(whole, length=length):
            result = torch.empty(length)
            rows = None
            if rank == 0:
                rows = [torch.zeros(length) for _ in range(ranks)]
                for number, row in enumerate(rows):
                    part = whole[number * length : (number + 1) * length]
                    row[: part.numel()] = part
            dist.scatter(result, rows)
            return result

        begin = 0
        whole = checkpoint["masters"][number].clone()
        dist.broadcast(whole, 0)
        for p in bucket:
            with torch.no_grad():
                p.view(-1).copy_(whole[begin : begin + p.numel()])
            begin += p.numel()
        master.data.copy_(mine(whole))
        for name, value in checkpoint["moments"][number].items():
            optimizer.state[master][name] = mine(value) if value.dim() else torch.full((), value.item())
