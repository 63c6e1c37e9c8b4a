"""The reduce-scatter that a run can ask for in gloo's place: same numbers, same record, the ring's bytes."""

import sys
import time

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from utils import Cluster, all_gather_single, launch, reduce_scatter_single
from utils.runtime.errors import RankFailed
from utils.runtime.ledger import Ledger
from utils.theory.traffic import collective_bytes
from utils.views import timeline

counted = pytest.mark.skipif(sys.platform != "linux", reason="no TCP counters on this system")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@counted
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_wire_carries_what_the_ring_says(ranks):
    own = 2**20 + 7  # numbers for each rank, of which no part is a multiple of anything

    def scatter(rank):
        for dtype in DTYPES:
            reduce_scatter_single(torch.empty(own, dtype=dtype), torch.ones(ranks * own, dtype=dtype))

    run = launch(scatter, ranks, true_reduce_scatter=True)
    law = sum(collective_bytes("reduce_scatter", ranks * own * dtype.itemsize, ranks) for dtype in DTYPES)
    assert run.ring_bytes == pytest.approx([law] * ranks)
    for wire in run.wire_bytes:
        assert (wire.sent, wire.received) == (pytest.approx(law, rel=0.01), pytest.approx(law, rel=0.01))


def in_all_forms(rank, dtype):
    """What each form of a reduce-scatter leaves, in numbers of which every sum is exact in 16 bit."""
    ranks = dist.get_world_size()
    whole = (torch.arange(5 * ranks) % 7 + rank).to(dtype)
    results = []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
        if op == dist.ReduceOp.AVG and not dtype.is_floating_point:
            continue
        by_tensor, by_list = torch.zeros(5, dtype=dtype), torch.zeros(5, dtype=dtype)
        reduce_scatter_single(by_tensor, whole, op=op)
        dist.reduce_scatter(by_list, list(whole.chunk(ranks)), op=op)
        in_place = whole.clone()
        reduce_scatter_single(in_place[5 * rank : 5 * rank + 5], in_place, op=op)
        stacked = torch.zeros(1, 5, dtype=dtype)
        work = reduce_scatter_single(stacked, whole.view(ranks, 5), op=op, async_op=True)
        work.wait()
        assert torch.equal(whole, (torch.arange(5 * ranks) % 7 + rank).to(dtype)), "the input was written over"
        results += [by_tensor, by_list, in_place[5 * rank : 5 * rank + 5], stacked[0]]
    return results


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_numbers_are_those_of_gloo(ranks):
    dtypes = (*DTYPES, torch.int64)

    def all_dtypes(rank):
        return [in_all_forms(rank, dtype) for dtype in dtypes]

    gloo, true = (launch(all_dtypes, ranks, true_reduce_scatter=asked).values for asked in (False, True))
    for mine, theirs in zip(true, gloo, strict=True):
        for dtype, of_true, of_gloo in zip(dtypes, mine, theirs, strict=True):
            tolerance = 1e-2 if dtype.itemsize == 2 else 1e-6
            torch.testing.assert_close(of_true, of_gloo, rtol=tolerance, atol=0)


def test_it_is_recorded_as_one_reduce_scatter():
    def scatter(rank):
        reduce_scatter_single(torch.empty(6), torch.ones(24))
        reduce_scatter_single(torch.empty(6), torch.ones(24), async_op=True).wait()

    run = launch(scatter, 4, true_reduce_scatter=True)
    for ops in run.timeline.ops:
        assert [(op.kind, op.bytes, op.ring_bytes, op.dtype) for op in ops] == [
            ("reduce_scatter", 96, 72, "float32")
        ] * 2
        assert all(op.issued_at < op.completed_at <= op.waited_at for op in ops)
        assert "reduce_scatter_single(torch.empty(6)" in ops[0].line.text


def test_the_run_and_its_pictures_say_so():
    run = launch(lambda rank: None, 2, true_reduce_scatter=True)
    assert run.true_reduce_scatter and "gloo, true reduce-scatter" in repr(run)
    assert "gloo, true reduce-scatter" in run._repr_html_()
    plain = launch(lambda rank: None, 2)
    assert not plain.true_reduce_scatter and "true" not in repr(plain) + plain._repr_html_()


def test_the_title_of_the_timeline_says_so(monkeypatch):
    titles, draw = [], timeline._scene
    monkeypatch.setattr(timeline, "_scene", lambda *a: titles.append(a[-1]) or draw(*a))
    run = launch(lambda rank: reduce_scatter_single(torch.empty(1), torch.ones(2)), 2, true_reduce_scatter=True)
    assert "2 ranks" in run.timeline.picture("A step").alt
    assert titles == ["A step, true reduce-scatter"]


def test_a_future_carries_the_result():
    def chained(rank):
        part = torch.empty(2)
        future = reduce_scatter_single(part, torch.ones(4), async_op=True).get_future()
        return future.then(lambda done: 10 * done.value()[0]).wait().tolist(), part.tolist()

    assert launch(chained, 2, true_reduce_scatter=True).values == (([20, 20], [2, 2]),) * 2


def test_ddp_takes_it_in_a_hook():
    """As a sharded optimizer's hook does: reduce-scatter a bucket, and gather the mean again."""

    def step(rank, hooked):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(4, 4, bias=False))

        def hook(state, bucket):
            flat = bucket.buffer()
            part = torch.empty(flat.numel() // 2)
            work = reduce_scatter_single(part, flat, op=dist.ReduceOp.AVG, async_op=True)

            def gather(done):
                all_gather_single(flat, done.value()[0])
                return flat

            return work.get_future().then(gather)

        if hooked:
            model.register_comm_hook(None, hook)
        model(torch.full((2, 4), 1.0 + rank)).sum().backward()
        return model.module.weight.grad

    plain, hooked = (launch(step, 2, asked, true_reduce_scatter=True).values for asked in (False, True))
    for a, b in zip(plain, hooked, strict=True):
        torch.testing.assert_close(a, b)


def fsdp_losses(rank, steps=3):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(250, 250) for _ in range(4)))
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        torch.manual_seed(10 * step + rank)
        loss = model(torch.randn(8, 250)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@counted
def test_fsdp_moves_three_times_its_parameters():
    gloo, true = (launch(fsdp_losses, 2, true_reduce_scatter=asked) for asked in (False, True))
    for a, b in zip(gloo.values, true.values, strict=True):
        assert a == pytest.approx(b, rel=1e-5)
    parameters = 4 * 250 * 251 * 4
    moved = [run.wire_bytes[0].sent / (3 * parameters / 2) for run in (gloo, true)]
    assert moved == [pytest.approx(4, rel=0.02), pytest.approx(3, rel=0.02)]


@counted
def test_coalesced_ones_are_exchanged_too():
    def scatter(rank):
        small, large = torch.empty(3), torch.empty(2**18)
        with dist._coalescing_manager(async_ops=True) as works:
            reduce_scatter_single(small, torch.ones(12))
            reduce_scatter_single(large, torch.ones(2**20))
        works.wait()
        return small.sum().item(), large.sum().item()

    run = launch(scatter, 4, true_reduce_scatter=True)
    assert run.values == ((12.0, 2.0**20),) * 4
    assert run.wire_bytes[0].sent == pytest.approx(0.75 * 2**22, rel=0.01)


@counted
def test_a_group_of_some_ranks_has_its_own_rule():
    def scatter(rank):
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        part = torch.empty(2**20)
        reduce_scatter_single(part, torch.full((2**21,), float(rank)), group=pairs[rank // 2])
        return part[0].item()

    run = launch(scatter, 4, true_reduce_scatter=True)
    assert run.values == (1.0, 1.0, 5.0, 5.0)
    assert run.wire_bytes[3].sent == pytest.approx(2**22, rel=0.01)


@counted
def test_without_asking_gloo_does_it_its_own_way():
    run = launch(lambda rank: reduce_scatter_single(torch.empty(2**18), torch.ones(2**20)), 4)
    assert run.wire_bytes[0].sent == pytest.approx(1.5 * 2**22, rel=0.01)


def test_emulated_links_charge_the_same():
    nodes = Cluster(nodes=2, ranks_per_node=1, link="1gbit", kind="emulated")

    def scatter(rank):
        part = torch.empty(2**19)
        reduce_scatter_single(part, torch.ones(2**20))
        return part[0].item()

    run = launch(scatter, 2, cluster=nodes, true_reduce_scatter=True)
    assert run.values == (2.0, 2.0)
    assert run.timeline.true_reduce_scatter and "emulated link, true reduce-scatter" in repr(run)
    op = run.timeline[0][0]
    # Half of 4 MiB over 125 MB/s, at least; the clock's floats have a microsecond.
    assert op.completed_at - op.issued_at >= 2**21 / 125e6 - 1e-6


def test_a_rank_that_fails_is_named_all_the_same():
    def scatter(rank):
        if rank == 1:
            raise ValueError("bad shard")
        reduce_scatter_single(torch.empty(1), torch.ones(3))

    with pytest.raises(RankFailed, match=r"(?s)rank 1 raised ValueError: bad shard.*wait in reduce_scatter #1"):
        launch(scatter, 3, true_reduce_scatter=True)


def test_wrong_shapes_are_refused_as_gloo_refuses_them():
    def scatter(rank):
        reduce_scatter_single(torch.empty(3), torch.ones(4))

    messages = []
    for asked in (False, True):
        with pytest.raises(RankFailed) as refused:
            launch(scatter, 2, true_reduce_scatter=asked)
        messages.append(str(refused.value).partition("Check failed")[2].splitlines()[0])
    assert messages[0] == messages[1] and "(6 vs. 4)" in messages[0]


def test_it_must_be_true_or_false():
    with pytest.raises(TypeError, match="true_reduce_scatter is 'yes'; it must be True or False"):
        launch(fsdp_losses, 2, true_reduce_scatter="yes")


def test_what_was_waited_for_is_kept_by_nobody():
    def left_over(rank):
        ledger = Ledger()
        reduce_scatter_single(torch.empty(1000), torch.ones(3000))
        end = time.monotonic() + 5
        while ledger.at_rest().total and time.monotonic() < end:  # gloo lets go a moment later
            time.sleep(0.01)
        return ledger.at_rest().total

    assert launch(left_over, 3, true_reduce_scatter=True).values == (0, 0, 0)
