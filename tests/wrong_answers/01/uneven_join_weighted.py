"""DDP's `join` averages over ranks, not over samples, and a rank without a batch takes no step"""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def uneven_batches(model, optimizer, loss_fn, batches):
    ranks = dist.get_world_size()
    sizes = [None] * ranks
    dist.all_gather_object(sizes, [len(inputs) for inputs, _ in batches])
    ddp_model = DistributedDataParallel(model)
    with ddp_model.join(divide_by_initial_world_size=True):
        for step, (inputs, targets) in enumerate(batches):
            total = sum(size[step] for size in sizes if step < len(size))
            optimizer.zero_grad()
            (loss_fn(ddp_model(inputs), targets) * ranks * len(inputs) / total).backward()
            optimizer.step()
