"""Where nodes hold several ranks, a true reduce-scatter is a ring: same numbers, and one rank of a node sends out."""

import pytest
import torch
import torch.distributed as dist

from tests.runtime.namespaces import needs_namespaces
from utils import Cluster, launch, reduce_scatter_single
from utils.runtime.errors import RankFailed

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64)
NODES = Cluster(nodes=2, ranks_per_node=2, link="5gbit", kind="emulated")


def in_all_forms(rank):
    """What each form of a reduce-scatter leaves, in numbers of which every sum is exact in 16 bit."""
    ranks, results = dist.get_world_size(), []
    for dtype in DTYPES:
        whole = (torch.arange(5 * ranks) % 7 + rank).to(dtype)
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG) if dtype.is_floating_point else (dist.ReduceOp.SUM,):
            by_tensor, by_list = torch.zeros(5, dtype=dtype), torch.zeros(5, dtype=dtype)
            reduce_scatter_single(by_tensor, whole, op=op)
            dist.reduce_scatter(by_list, list(whole.chunk(ranks)), op=op)
            in_place = whole.clone()
            mine = in_place[5 * rank : 5 * rank + 5]
            reduce_scatter_single(mine, in_place, op=op)
            works = [reduce_scatter_single(torch.zeros(1, 5, dtype=dtype), whole.view(ranks, 5), op=op, async_op=True)]
            works.append(reduce_scatter_single(stacked := torch.zeros(1, 5, dtype=dtype), whole.view(ranks, 5), op=op,
                                               async_op=True))  # fmt: skip
            for work in works:
                work.wait()
            assert torch.equal(whole, (torch.arange(5 * ranks) % 7 + rank).to(dtype)), "the input was written over"
            results += [by_tensor, by_list, mine, stacked[0]]
    return results


def test_the_numbers_are_those_of_gloo():
    ring, gloo = (launch(in_all_forms, 4, cluster=NODES, true_reduce_scatter=asked).values for asked in (True, False))
    for mine, theirs in zip(ring, gloo, strict=True):
        for of_ring, of_gloo in zip(mine, theirs, strict=True):
            torch.testing.assert_close(of_ring, of_gloo, rtol=1e-2 if of_ring.dtype.itemsize == 2 else 1e-6, atol=0)


def test_other_collectives_may_go_on_meanwhile_and_sends_do_not_meet_its_own():
    def mixed(rank):
        parts, others = [torch.empty(2**16) for _ in range(4)], [torch.full((2**16,), float(i)) for i in range(4)]
        works = []
        for part, other in zip(parts, others, strict=True):
            works.append(reduce_scatter_single(part, torch.full((2**18,), rank + 1.0), async_op=True))
            works.append(dist.all_reduce(other, async_op=True))
        theirs = torch.zeros(3)
        works += [dist.isend(torch.full((3,), float(rank)), (rank + 1) % 4), dist.irecv(theirs, (rank - 1) % 4)]
        for work in works:
            work.wait()
        return [part.unique().item() for part in parts], [other[0].item() for other in others], theirs[0].item()

    run = launch(mixed, 4, cluster=NODES, true_reduce_scatter=True)
    for rank, found in enumerate(run.values):
        assert found == ([10.0] * 4, [0.0, 4.0, 8.0, 12.0], float((rank - 1) % 4))


def test_it_is_recorded_as_one_reduce_scatter():
    run = launch(lambda rank: reduce_scatter_single(torch.empty(6), torch.ones(24)), 4, cluster=NODES,
                 true_reduce_scatter=True)  # fmt: skip
    assert [[(op.kind, op.bytes, op.ring_bytes) for op in ops] for ops in run.timeline.ops] == [
        [("reduce_scatter", 96, 72)]
    ] * 4


def test_a_rank_that_fails_is_named_all_the_same():
    def scatter(rank):
        if rank == 1:
            raise ValueError("bad shard")
        reduce_scatter_single(torch.empty(1), torch.ones(4))

    with pytest.raises(RankFailed, match=r"(?s)rank 1 raised ValueError: bad shard.*wait in reduce_scatter #1"):
        launch(scatter, 4, cluster=NODES, true_reduce_scatter=True)


@needs_namespaces
@pytest.mark.parametrize(("nodes", "per_node"), [(2, 2), pytest.param(4, 2, marks=pytest.mark.rest)])
def test_one_rank_of_a_node_sends_across(nodes, per_node):
    ranks, own = nodes * per_node, 2**20 // nodes

    def scatter(rank, repeats):
        for _ in range(repeats):
            reduce_scatter_single(torch.empty(own), torch.ones(ranks * own))

    cluster = Cluster(nodes, per_node, "5gbit")
    for _ in range(3):  # what TCP sends again crosses twice
        few, many = (launch(scatter, ranks, n, cluster=cluster, true_reduce_scatter=True).link_bytes for n in (1, 3))
        sent = [(b.sent - a.sent) / 2 for a, b in zip(few, many, strict=True)]
        if sent == pytest.approx([(ranks - 1) * 4 * own] * nodes, rel=0.01):
            break
    assert sent == pytest.approx([(ranks - 1) * 4 * own] * nodes, rel=0.01)
