"""Parts padded with zeros to one length."""

import torch
import torch.distributed as dist


def reduce_scatter_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    lengths = [len(part) for part in tensor.tensor_split(ranks)]
    parts = tensor.new_zeros(ranks, lengths[0])
    for row, part in zip(parts, tensor.tensor_split(ranks), strict=True):
        row[: len(part)] = part
    for step in range(ranks - 1):
        arrived = torch.empty_like(parts[0])
        sending = dist.isend(parts[rank - step - 1], (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        parts[rank - step - 2] += arrived
    return parts[rank][: lengths[rank]]
