"""Every parameter keeps a storage of its own, which is emptied and filled from what is gathered. The last layer, whose
backward comes first, stays gathered in between."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    groups, slices = [], []
    for layer in layers:
        group = [p for p in layer.parameters() if p.requires_grad]
        flat = torch.cat([p.detach().flatten() for p in group])
        flat = torch.cat([flat, flat.new_zeros(-len(flat) % ranks)])
        groups.append(group)
        slices.append(flat.chunk(ranks)[rank].clone())
        for p in group:
            p.data = p.detach().clone()
    del flat
    sizes = {p: p.untyped_storage().nbytes() for group in groups for p in group}
    sums = [torch.zeros_like(mine) for mine in slices]
    masters = [mine.float() for mine in slices]
    optimizer = make_optimizer(masters)

    def free(group):
        for p in group:
            p.untyped_storage().resize_(0)

    def gather(number, *_):
        group = groups[number]
        if all(p.untyped_storage().nbytes() for p in group):
            return
        flat = slices[number].new_empty(ranks * slices[number].numel())
        all_gather_single(flat, slices[number])
        begin = 0
        for p in group:
            p.untyped_storage().resize_(sizes[p])
            p.data.copy_(flat[begin : begin + p.numel()].view_as(p))
            begin += p.numel()

    def after_forward(number, *_):
        if number < len(layers) - 1:
            free(groups[number])

    def reduce(number):
        flat = sums[number].new_zeros(ranks * sums[number].numel())
        gradient = torch.empty_like(sums[number])
        reduce_scatter_single(gradient, take_gradients(groups[number], flat))
        sums[number] += gradient / ranks

    def ready(number, _):
        if all(p.grad is not None for p in groups[number]):
            reduce(number)
            free(groups[number])

    for number, (layer, group) in enumerate(zip(layers, groups, strict=True)):
        free(group)
        layer.register_forward_pre_hook(lambda *_, number=number: gather(number))
        layer.register_forward_hook(lambda *_, number=number: after_forward(number))
        layer.register_full_backward_pre_hook(lambda *_, number=number: gather(number))
        for p in group:
            p.register_post_accumulate_grad_hook(lambda p, number=number: ready(number, p))

    def step():
        for number, group in enumerate(groups):
            if any(p.grad is not None for p in group):
                reduce(number)
            free(group)
            masters[number].grad = sums[number].float()
        optimizer.step()
        for number, master in enumerate(masters):
            master.grad = None
            slices[number].copy_(master)
            sums[number].zero_()

    return step
