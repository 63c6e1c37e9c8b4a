"""the model's weights do not move"""

import torch.distributed as dist


def zero1(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    return make_optimizer([mine.float() for _, mine in parts]).step
