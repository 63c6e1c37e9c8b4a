"""rank 0 runs 16 samples through the model, where its own share has 4"""

import torch
import torch.distributed as dist


def train_step(model, optimizer, loss_fn, inputs, targets):
    everyone = [[torch.empty_like(each) for _ in range(dist.get_world_size())] for each in (inputs, targets)]
    for parts, each in zip(everyone, (inputs, targets), strict=True):
        dist.all_gather(parts, each)
    optimizer.zero_grad()
    loss = loss_fn(model(torch.cat(everyone[0])), torch.cat(everyone[1]))
    loss.backward()
    optimizer.step()
    return loss.item()
