"""Emulated links: real data, and completions that keep to the links' timetable."""

import time
from collections import defaultdict
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from tests.runtime.namespaces import needs_namespaces
from utils import Cluster, all_gather_single, launch, reduce_scatter_single
from utils.runtime import kernel_link
from utils.runtime.pacer_loads import load

S = 100_000  # bytes
LATE = 0.1  # seconds by which all ranks of an operation may be late on a busy machine
MB = 1_000_000


def emulated(nodes, ranks_per_node=1, link="50mbit", latency=None):
    return Cluster(nodes, ranks_per_node, link, latency, kind="emulated")


def operations(run):
    """By operation, the records of all ranks that took part."""
    found = defaultdict(list)
    for rank, ops in enumerate(run.timeline.ops):
        for op in ops:
            pair = (min(rank, op.peer), max(rank, op.peer)) if op.kind in ("send", "recv") else None
            found[op.group, op.sequence, pair].append(op)
    return list(found.values())


def took(ops):
    """Seconds from the last rank's issue to the end, as each rank recorded it."""
    last = max(op.issued_at for op in ops)
    return [op.completed_at - last for op in ops]


def every_kind(rank):
    n, x = dist.get_world_size(), torch.arange(S // 4, dtype=torch.float32) + rank
    part, out = x[: len(x) // n].clone(), {}
    dist.all_reduce(y := x.clone())
    out["all_reduce"] = y
    all_gather_single(y := torch.empty(len(part) * n), part)
    out["all_gather"] = y
    reduce_scatter_single(y := torch.empty(len(part)), x)
    out["reduce_scatter"] = y
    dist.broadcast(y := x.clone(), 1)
    out["broadcast"] = y
    dist.reduce(y := x.clone(), 2)
    out["reduce"] = y if rank == 2 else None
    dist.all_to_all_single(y := torch.empty_like(x), x)
    out["all_to_all"] = y
    dist.gather(part, y := [torch.empty_like(part) for _ in range(n)] if rank == 0 else None, 0)
    out["gather"] = y
    dist.scatter(y := torch.empty_like(part), list(x.chunk(n)) if rank == 3 else None, 3)
    out["scatter"] = y
    if rank < 2:
        y = torch.empty_like(x)
        dist.send(x, 1) if rank == 0 else dist.recv(y, 0)
        out["message"] = y if rank else None
    dist.barrier()
    return out


@pytest.fixture(scope="module")
def runs():
    """The same program over emulated links and without any."""
    return launch(every_kind, 4, cluster=emulated(4, latency="5ms")), launch(every_kind, 4)


def test_every_operation_ends_when_the_links_have_carried_it(runs):
    seen = set()
    for ops in operations(runs[0]):
        first = ops[0]
        seen.add(first.kind)
        message = first.kind in ("send", "recv")
        of = load(first.kind, (0, 1) if message else (0, 1, 2, 3), 0 if message else first.peer or 0)
        law = max((share for _, share in of.shares), default=0) * first.bytes / 6.25e6 + of.crossings * 0.005
        last = max(op.issued_at for op in ops)
        for op in ops:  # with a root, a rank may be done before all have joined
            waits_for_all = first.kind not in ("broadcast", "reduce", "gather", "scatter")
            assert op.completed_at - (last if waits_for_all else op.issued_at) >= law - 1e-6, op
        assert min(took(ops)) < law + LATE, first
    assert len(seen) == 10


def test_the_data_is_what_it_is_without_links(runs):
    for over_links, alone in zip(runs[0].values, runs[1].values, strict=True):
        torch.testing.assert_close(over_links, alone)


def test_a_run_says_that_its_link_is_emulated(runs):
    run, alone = runs
    assert run.emulated == run.timeline.emulated == "emulated link" and alone.emulated == ""
    assert run.link_bytes is None
    assert "(gloo, emulated link)" in repr(run) and "emulated link" in run._repr_html_()
    assert "emulated" not in repr(alone) + alone._repr_html_()
    assert run.ring_bytes == alone.ring_bytes


def test_a_small_message_takes_the_latency_of_every_step():
    run = launch(lambda rank: dist.all_reduce(torch.ones(256)), 3, cluster=emulated(3, link="1gbit", latency="20ms"))
    assert 4 * 0.020 <= min(took(operations(run)[0])) < 4 * 0.020 + LATE


def issue_together(rank):
    big, small = torch.ones(MB // 4), torch.ones(1)
    works = [dist.all_reduce(big, async_op=True), dist.all_reduce(small, async_op=True)]
    polled = works[0].is_completed()
    for work in works:
        work.wait()
    return polled, [work.is_completed() for work in works]


def test_operations_go_over_a_link_one_after_the_other():
    run = launch(issue_together, 2, cluster=emulated(2))
    big, small = operations(run)
    assert min(took(big)) >= 0.16 - 1e-6
    assert min(op.completed_at for op in small) >= max(op.issued_at for op in big) + 0.16
    assert run.values[0] == (False, [True, True])


def reduce_across_nodes(rank):
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    dist.all_reduce(torch.ones(MB // 4), group=groups[rank % 2])
    inside = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    dist.all_reduce(torch.ones(MB), group=inside[rank // 2])


def test_the_ranks_of_a_node_share_its_link_and_are_free_inside():
    run = launch(reduce_across_nodes, 4, cluster=emulated(2, 2))
    across = [ops for ops in operations(run) if ops[0].bytes == MB]
    inside = [ops for ops in operations(run) if ops[0].bytes == 4 * MB]
    assert len(across) == len(inside) == 2
    first, second = sorted(min(op.completed_at for op in ops) for ops in across)
    begin = min(max(op.issued_at for op in ops) for ops in across)
    assert first >= begin + 0.16 - 1e-6 and second >= begin + 0.32 - 1e-6
    assert max(max(took(ops)) for ops in inside) < 0.5  # over the link: 0.64 s, twice


def test_a_cluster_of_one_node_holds_nothing_back():
    def work_of(rank):
        work = dist.all_reduce(torch.ones(MB), async_op=True)
        work.wait()
        return type(work).__name__

    assert set(launch(work_of, 2, cluster=emulated(1, 2, "1mbit")).values) == {"Work"}
    assert set(launch(work_of, 2).values) == {"Work"}


def test_a_late_rank_holds_up_the_others_and_the_transfer_begins_with_it():
    def late(rank):
        time.sleep(0.3 * (rank == 1))
        dist.all_reduce(torch.ones(MB // 40))  # 16 ms

    (reduced,) = operations(launch(late, 2, cluster=emulated(2)))
    assert 0.016 - 1e-6 <= min(took(reduced)) < 0.016 + LATE
    first, last = sorted(op.issued_at for op in reduced)
    assert last - first > 0.2


def use_works(rank):
    x, found = torch.full((S // 4,), rank + 1.0), {}
    work = dist.all_reduce(x, async_op=True)
    with pytest.raises(RuntimeError, match="all_reduce did not complete within"):
        work.wait(timedelta(milliseconds=1))
    found["future"] = work.get_future().wait()[0][0].item()
    found["again"] = (work.wait(), work.is_success(), work.result()[0][0].item())

    def once_more(future):  # waits inside a callback, as PowerSGD's hook does
        return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

    found["chained"] = dist.all_reduce(x, async_op=True).get_future().then(once_more).wait()[0].item()
    both = torch.futures.collect_all([dist.all_reduce(x, async_op=True).get_future() for _ in range(2)])
    found["collected"] = len(both.wait())
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(x)
        dist.all_reduce(x)
    manager.wait()
    y = torch.empty_like(x)
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]):
        request.wait()
    found["exchanged"] = torch.equal(x, y)
    gathered = [None, None]
    dist.all_gather_object(gathered, {"rank": rank})
    found["objects"] = gathered
    found["functional"] = torch.ops._c10d_functional.wait_tensor(
        torch.ops._c10d_functional.all_reduce(torch.ones(4), "sum", dist.group.WORLD.group_name)
    )[0].item()
    return found


def test_works_and_futures_do_what_the_backends_do():
    run = launch(use_works, 2, cluster=emulated(2, latency="5ms"))
    for found in run.values:
        assert found["future"] == 3.0 and found["again"] == (True, True, 3.0)
        assert found["chained"] == 12.0 and found["collected"] == 2
        assert found["exchanged"] and found["functional"] == 2.0
        assert found["objects"] == [{"rank": 0}, {"rank": 1}]
    assert all(op.completed_at is not None and not op.error for ops in run.timeline.ops for op in ops)


def keep_nothing(rank):
    from utils.runtime.storages import COMMUNICATED

    for _ in range(3):
        x = torch.ones(1000)
        dist.all_reduce(x)
        dist.all_reduce(x, async_op=True).get_future().wait()
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        work = None
        reduce_scatter_single(y := torch.empty(500), x)
    del x, y
    end = time.perf_counter() + 2  # threads let go a moment later
    while time.perf_counter() < end and list(COMMUNICATED.alive()):
        time.sleep(0.01)
    return len(list(COMMUNICATED.alive()))


def test_no_tensor_is_kept_longer_than_without_links():
    assert launch(keep_nothing, 2, cluster=emulated(2)).values == launch(keep_nothing, 2).values == (0, 0)


def test_a_transfer_that_takes_its_time_is_not_called_stuck():
    """The supervisor looks after one second, and calls ranks stuck after 0.8 s without a move."""
    run = launch(lambda rank: dist.all_reduce(torch.ones(MB // 8)), 2, cluster=emulated(2, link="1.6mbit"), timeout=30)
    assert min(took(operations(run)[0])) >= 2.5


@needs_namespaces
def test_latency_on_the_kernels_links_where_the_kernel_cannot_delay(monkeypatch):
    monkeypatch.setattr(kernel_link, "kernel_delays", lambda: False)
    cluster = Cluster(2, 1, "1gbit", "20ms")
    run = launch(lambda rank: dist.all_reduce(torch.ones(256)), 2, cluster=cluster)
    assert run.emulated == "emulated latency"
    assert 0.040 <= min(took(operations(run)[0])) < 0.040 + LATE
    assert run.link_bytes[0].sent >= 1024
