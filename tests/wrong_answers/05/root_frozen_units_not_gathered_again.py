"""does so while it is gathered, in backward too, and where the unit is frozen"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def root(model, units, make_optimizer):
    owners = [(module, group) for module, group in zip((*units, model), split(model, units), strict=True) if group]
    modules, groups = zip(*owners, strict=True)
    flats, shards = zip(*(shard(group, dist.get_rank(), dist.get_world_size()) for group in groups), strict=True)
    trained = [number for number, group in enumerate(groups) if group[0].requires_grad]
    masters = {number: shards[number].float() for number in trained}
    optimizer = make_optimizer(list(masters.values()))
    gradients = {number: torch.zeros_like(shards[number]) for number in trained}

    def gather(number, *_):
        flat = flats[number]
        if flat.untyped_storage().nbytes() == 0:
            flat.untyped_storage().resize_(flat.nbytes)
            all_gather_single(flat, shards[number])

    def free(number, *_):
        flats[number].untyped_storage().resize_(0)

    def after_forward(number, *_):
        if modules[number] is not model or not torch.is_grad_enabled():  # the root's backward follows at once
            free(number)

    def reduce(number):
        gradient = torch.empty_like(shards[number])
        reduce_scatter_single(gradient, take_gradients(groups[number], flats[number]), op=dist.ReduceOp.AVG)
        gradients[number] += gradient
        free(number)

    def ready(number, _):
        if all(p.grad is not None for p in groups[number]):
            reduce(number)

    for number, module in enumerate(modules):
        module.register_forward_pre_hook(partial(gather, number))
        module.register_forward_hook(partial(after_forward, number))
        if number not in trained:
            continue
        module.register_full_backward_pre_hook(partial(gather, number))
        for p in groups[number]:
            p.register_post_accumulate_grad_hook(partial(ready, number))

    def step():
        for number, group in enumerate(groups):
            if any(p.grad is not None for p in group):
                reduce(number)
            free(number)
        for number, master in masters.items():
            master.grad = gradients[number].float()
        optimizer.step()
        optimizer.zero_grad()
        for number, master in masters.items():
            shards[number].copy_(master)
            gradients[number].zero_()

    return step
