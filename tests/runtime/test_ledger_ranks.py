"""The ledger in ranks: DDP's buckets, shards and what is gathered beside them."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from utils import launch
from utils.runtime.ledger import Ledger

WIDE, LAYERS = 64, 4
PSI = LAYERS * WIDE * WIDE


def layers():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDE, WIDE, bias=False) for _ in range(LAYERS)])


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(2, WIDE)).sum().backward()
    optimizer.step()


def under_ddp(rank, as_view):
    model = DistributedDataParallel(layers(), gradient_as_bucket_view=as_view)
    optimizer = torch.optim.Adam(model.parameters())
    ledger = Ledger(model, optimizer)
    for _ in range(3):  # buckets are made anew after the first step
        step(model, optimizer)
    held = ledger.at_rest()
    optimizer.zero_grad()
    return held, ledger.at_rest()


@pytest.mark.parametrize("as_view", [False, True])
def test_the_buckets_of_ddp_are_one_more_copy_unless_gradients_are_views_of_them(as_view):
    counters = 4 * LAYERS
    for after_step, after_zero_grad in launch(under_ddp, 2, as_view).values:
        assert after_step.model_states == 16 * PSI
        assert after_step.other == counters + (0 if as_view else 4 * PSI)
        # zero_grad lets the gradients go; DDP keeps its buckets.
        assert after_zero_grad.gradients == (4 * PSI if as_view else 0)
        assert after_zero_grad.other == after_step.other


def in_mixed_precision(rank):
    model = layers().bfloat16()
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters)
    ledger = Ledger(model, optimizer)
    for _ in range(2):
        model.zero_grad()
        model(torch.full((2, WIDE), rank + 1.0, dtype=torch.bfloat16)).sum().backward()
        for master, p in zip(masters, model.parameters(), strict=True):
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
            master.grad = p.grad.float()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for master, p in zip(masters, model.parameters(), strict=True):
                p.copy_(master)
    return ledger.at_rest()


@pytest.mark.parametrize("world_size", [2, 4])
def test_every_rank_holds_sixteen_bytes_per_parameter_in_mixed_precision(world_size):
    for held in launch(in_mixed_precision, world_size).values:
        assert (held.weights, held.gradients, held.master_weights, held.moments) == (2 * PSI, 2 * PSI, 4 * PSI, 8 * PSI)
        assert held.model_states == 16 * PSI


def under_fsdp(rank):
    from torch.distributed.fsdp import fully_shard

    model = layers()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters())
    ledger = Ledger(model, optimizer)
    step(model, optimizer)
    with ledger.over_time() as history:
        step(model, optimizer)
    return ledger.at_rest(), history


def test_fsdp_holds_its_shards_and_one_gathered_unit_beside_them():
    """1/N of the parameters, and 1/L while a layer is gathered. Source of the law: design, section 3, "Memory"."""
    for held, history in launch(under_fsdp, 2).values:
        assert (held.weights, held.gradients, held.moments) == (2 * PSI, 2 * PSI, 4 * PSI)
        weights = {sample.label: sample.holdings.weights / (4 * PSI) for sample in history.samples}
        assert weights["forward begins"] == weights["forward of 0 done"] == weights["step begins"] == 1 / 2
        assert weights["forward of 0 begins"] == weights["forward of 3 begins"] == 1 / 2 + 1 / LAYERS


def under_zero_1(rank):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = layers()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
    ledger = Ledger(model, optimizer)
    step(model, optimizer)
    return ledger.at_rest()


def test_an_optimizer_inside_an_optimizer_is_found():
    for held in launch(under_zero_1, 2).values:
        assert (held.weights, held.gradients, held.moments) == (4 * PSI, 4 * PSI, 4 * PSI)
        assert held.master_weights == 0


def with_a_flat_shard(rank):
    model = layers().to(torch.bfloat16)
    flat = torch.cat([p.detach().flatten() for p in model.parameters()]).float()
    shard = flat.chunk(2)[rank].clone().requires_grad_()
    del flat
    optimizer = torch.optim.Adam([shard])
    shard.grad = torch.ones_like(shard)
    ledger = Ledger(model, optimizer)
    optimizer.step()
    return ledger.at_rest()


def test_the_shard_of_a_flat_buffer_is_master_weights():
    for held in launch(with_a_flat_shard, 2).values:
        assert (held.weights, held.gradients) == (2 * PSI, 4 * PSI / 2)
        assert (held.master_weights, held.moments, held.other) == (4 * PSI / 2, 8 * PSI / 2, 4)
