"""DDP's `join` averages over ranks, not over samples, and a rank without a batch takes no step"""

from torch.nn.parallel import DistributedDataParallel


def uneven_batches(model, optimizer, loss_fn, batches):
    ddp_model = DistributedDataParallel(model)
    with ddp_model.join():
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss_fn(ddp_model(inputs), targets).backward()
            optimizer.step()
