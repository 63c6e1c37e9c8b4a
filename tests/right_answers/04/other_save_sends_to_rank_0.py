"""Each rank sends its slices to rank 0, tensor by tensor; all tensors of a bucket in one row."""

import torch
import torch.distributed as dist


def save(buckets, optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    result = {"masters": [], "moments": []}
    for number, bucket in enumerate(buckets):
        master = optimizer.param_groups[0]["params"][number]
        state = {name: value for name, value in optimizer.state[master].items() if torch.is_tensor(value)}
        sliced = [name for name in sorted(state) if state[name].shape == master.shape]
        mine = torch.stack([master.detach(), *(state[name] for name in sliced)])
        if rank:
            dist.send(mine, 0)
            continue
        rows = [mine] + [torch.empty_like(mine) for _ in range(ranks - 1)]
        for other in range(1, ranks):
            dist.recv(rows[other], other)
        whole = torch.cat(rows, dim=1)[:, : sum(p.numel() for p in bucket)]
        result["masters"].append(whole[0].clone())
        moments = {name: row.clone() for name, row in zip(sliced, whole[1:], strict=True)}
        result["moments"].append(moments | {name: state[name].clone() for name in state.keys() - set(sliced)})
    return result
