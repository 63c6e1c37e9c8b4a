"""nothing overlaps: when backward ends no all-reduce has been issued yet"""

import torch
import torch.distributed as dist


def overlap(buckets):
    def finish():
        for bucket in buckets:
            flat = torch.cat([p.grad.flatten() for p in bucket])
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
