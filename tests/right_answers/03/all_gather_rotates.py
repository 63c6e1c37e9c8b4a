"""Hands on what came last, and finds its place by counting ranks."""

import torch
import torch.distributed as dist


def all_gather_ring(tensor, part):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts, passing = tensor.tensor_split(ranks), part
    parts[rank].copy_(part)
    for source in [(rank - step) % ranks for step in range(1, ranks)]:
        arrived = torch.empty_like(parts[source])
        sending = dist.isend(passing, (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        parts[source].copy_(arrived)
        passing = arrived
