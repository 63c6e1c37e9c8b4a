"""the hook `gather` returns a Tensor, which takes the place of the module's inputs: return None"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def fsdp(units, make_optimizer):
    groups = [list(unit.parameters()) for unit in units]
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
        return flat

    def free(number, *_):
        flats[number].untyped_storage().resize_(0)

    def reduce(number):
        gradient = torch.empty_like(shards[number])
        reduce_scatter_single(gradient, take_gradients(groups[number], flats[number]), op=dist.ReduceOp.AVG)
        gradients[number] += gradient
        free(number)

    def ready(number, _):
        if all(p.grad is not None for p in groups[number]):
            reduce(number)

    for number, unit in enumerate(units):
        unit.register_forward_pre_hook(partial(gather, number))
        unit.register_forward_hook(partial(free, number))
        unit.register_full_backward_pre_hook(partial(gather, number))
        if number not in trained:
            unit.register_full_backward_hook(partial(free, number))
            continue
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
