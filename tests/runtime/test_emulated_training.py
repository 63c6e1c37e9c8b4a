"""Training over emulated links: the same weights, the simulated time, failures told as without links."""

import os
import time

import pytest
import torch
import torch.distributed as dist

from tests.runtime.test_emulated import MB, emulated
from utils import launch
from utils.runtime.errors import RankDied, RankFailed, RanksHang
from utils.runtime.paced import PacedLayer
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step


def train(rank, how, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(3)])
    if how == "ddp":
        wrapped = DistributedDataParallel(model, bucket_cap_mb=0.005)
    else:
        shape, names = ((2, ranks // 2), ("replica", "shard")) if how == "hsdp" else ((ranks,), ("shard",))
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        for layer in model:
            fully_shard(layer, mesh=mesh)
        wrapped = fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.arange(8.0)[:, None].expand(8, 32) / 8
    for _ in range(2):
        optimizer.zero_grad()
        wrapped(batch.chunk(ranks)[rank]).square().mean().backward()
        optimizer.step()
    return [p.detach() if how == "ddp" else p.full_tensor().detach() for p in model.parameters()]


@pytest.mark.parametrize(("how", "nodes", "each"), [("ddp", 2, 1), ("fsdp", 2, 1), ("hsdp", 2, 2)])
def test_training_gives_the_weights_that_it_gives_without_links(how, nodes, each):
    run = launch(train, nodes * each, how, nodes * each, cluster=emulated(nodes, each, "1gbit", "1ms"))
    alone = launch(train, nodes * each, how, nodes * each)
    torch.testing.assert_close(run.values, alone.values)
    assert [[op.kind for op in ops] for ops in run.timeline.ops] == [
        [op.kind for op in ops] for ops in alone.timeline.ops
    ]


def fail(rank, how):
    dist.all_reduce(torch.ones(MB // 40))
    if rank == 1 and how == "raise":
        raise ValueError("bad shard")
    if rank == 1 and how == "kill":
        os.kill(os.getpid(), 9)
    if rank == 1 and how == "skip":
        return
    if rank == 1 and how == "other":
        dist.barrier()
    dist.all_reduce(torch.ones(MB // 40))


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ("raise", RankFailed, r"rank 1 raised ValueError: bad shard[\s\S]*rank 0 waits in all_reduce #2"),
        ("kill", RankDied, "rank 1 was killed by SIGKILL"),
        ("skip", RanksHang, r"rank 1 having finished[\s\S]*rank 0 waits in all_reduce #2"),
        ("other", RankFailed, "must issue the same collectives in the same order"),
    ],
)
def test_failures_are_told_as_without_links(how, error, says):
    start = time.perf_counter()
    with pytest.raises(error, match=says):
        launch(fail, 2, how, cluster=emulated(2), timeout=60)
    assert time.perf_counter() - start < 20


def steps_of_ddp(rank, layers, parameters, forward, cap):
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = torch.nn.Sequential(*[PacedLayer(parameters, forward) for _ in range(layers)])
    model = DistributedDataParallel(model, bucket_cap_mb=cap, gradient_as_bucket_view=True)
    times = []
    for _ in range(4):
        dist.barrier()
        start = time.perf_counter()
        model(torch.ones(2)).sum().backward()
        times.append(time.perf_counter() - start)
    return times[1:]  # the first step has buckets of its own


def test_a_step_of_ddp_takes_what_the_simulation_says():
    """The narrow bound is measured by benchmarks/links.py; a busy machine wakes the layers late."""
    law = simulate_step([Layer(0.02, gradient_bytes=MB)] * 4, 2, Link(12.5e6), bucket_bytes=MB).seconds
    run = launch(steps_of_ddp, 2, 4, MB // 4, 0.02, MB / 2**20, cluster=emulated(2, link="100mbit"))
    steps = [max(times) for times in zip(*run.values, strict=True)]
    assert law - 1e-3 < min(steps) < 1.1 * law
