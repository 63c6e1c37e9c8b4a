"""What the one instrumentation point sees: learner code, DDP, FSDP, sends and receives, with bytes and lines."""

from collections import Counter

import pytest
import torch
import torch.distributed as dist

from utils import all_gather_single, launch, reduce_scatter_single
from utils.runtime.tap import KIND_OF, NOT_TAPPED
from utils.theory.traffic import collective_bytes

MIB = 2**20


def kinds(run, rank=0):
    return Counter(op.kind for op in run.timeline[rank])


def test_every_op_of_torch_is_tapped_or_on_the_named_list():
    schemas = torch._C._jit_get_all_schemas()
    ops = {schema.name.removeprefix("c10d::"): schema for schema in schemas if schema.name.startswith("c10d::")}
    assert set(ops) <= set(KIND_OF) | set(NOT_TAPPED)
    for name in set(ops) & set(KIND_OF):
        assert "process_group" in [argument.name for argument in ops[name].arguments], name


def test_bytes_kinds_peers_and_lines_of_learner_code():
    def talk(rank):
        x = torch.ones(MIB // 4)
        dist.all_reduce(x)
        all_gather_single(torch.empty(MIB), x)
        reduce_scatter_single(torch.empty(MIB // 16), x)
        dist.broadcast(x, src=1)
        if rank == 0:
            dist.send(x, dst=3)
        if rank == 3:
            dist.recv(x, src=0)
        dist.barrier()

    run = launch(talk, 4)
    ops = run.timeline[0]
    assert [op.kind for op in ops] == ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "send", "barrier"]
    assert [op.bytes for op in ops] == [MIB, 4 * MIB, MIB, MIB, MIB, 0]
    assert [op.peer for op in ops] == [None, None, None, 1, 3, None]
    assert [op.sequence for op in ops] == [1, 2, 3, 4, 1, 5]
    assert all(op.line.text.startswith(("dist.", "all_gather", "reduce_scatter")) for op in ops)
    assert all(op.ranks == (0, 1, 2, 3) for op in ops)
    assert all(0 <= op.issued_at < op.completed_at <= run.seconds for op in ops)
    assert run.timeline[3][4].kind == "recv" and run.timeline[3][4].peer == 0
    expected = sum(collective_bytes(op.kind, op.bytes, 4, rank=0, root=op.peer or 0) for op in ops)
    assert run.ring_bytes[0] == expected == (1.5 + 3 + 0.75 + 0 + 1) * MIB  # rank 0 stands last before root 1


def test_uneven_all_to_all_counts_what_goes_to_others():
    def exchange(rank):
        splits_in = [1, 2, 3]
        dist.all_to_all_single(torch.empty(3 * splits_in[rank]), torch.ones(6), [splits_in[rank]] * 3, splits_in)

    assert launch(exchange, 3).ring_bytes == (20, 16, 12)  # 6 floats less the rank's own 1, 2, 3


def test_groups_are_told_apart():
    def two_groups(rank):
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        dist.all_reduce(torch.ones(4), group=groups[rank // 2])

    run = launch(two_groups, 4)
    reduced = [[op for op in ops if op.kind == "all_reduce"][-1] for ops in run.timeline.ops]
    assert [op.ranks for op in reduced] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert reduced[0].group != reduced[2].group


def test_asynchronous_work_completes_and_errors_are_recorded():
    def overlap(rank):
        x, y = torch.ones(MIB), torch.zeros(MIB)
        works = [dist.all_reduce(x, async_op=True), dist.all_reduce(y, async_op=True)]
        request = dist.isend(x[:4].clone(), 1) if rank == 0 else dist.irecv(y[:4], 0)
        for work in [*works, request]:
            work.wait()
        return request.is_completed()

    run = launch(overlap, 2)
    assert run.values == (True, True)
    assert all(op.completed_at is not None and not op.error for ops in run.timeline.ops for op in ops)


def test_ddp_buckets_are_seen_from_its_reducer_in_c():
    def train(rank):
        from torch.nn.parallel import DistributedDataParallel

        model = DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]))
        for _ in range(3):
            model(torch.ones(2, 256)).sum().backward()
        return sum(p.numel() * 4 for p in model.parameters())

    run = launch(train, 2)
    reduced = [op for op in run.timeline[0] if op.kind == "all_reduce"]
    assert sum(op.bytes for op in reduced) == 3 * run.values[0]
    assert all(".backward()" in op.line.text for op in reduced)


def test_fsdp_gathers_and_scatters_are_seen_and_give_the_twins_gradients():
    def step(rank):
        from torch.distributed.fsdp import fully_shard

        torch.manual_seed(0)
        model = torch.nn.Sequential(*[torch.nn.Linear(64, 64, bias=False) for _ in range(2)])
        twin = torch.nn.Sequential(*[torch.nn.Linear(64, 64, bias=False) for _ in range(2)])
        twin.load_state_dict(model.state_dict())
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        batch = torch.arange(4.0)[:, None].expand(4, 64)
        model(batch[rank * 2 : rank * 2 + 2]).mean().backward()
        twin(batch).mean().backward()
        full = [p.grad.full_tensor() for p in model.parameters()]
        return max((a - b.grad).abs().max().item() for a, b in zip(full, twin.parameters(), strict=True))

    run = launch(step, 2)
    assert max(run.values) < 1e-6
    seen = kinds(run)
    assert seen["reduce_scatter"] == 2
    assert seen["all_gather"] == 2 + 2 + 2  # forward, backward, full_tensor
    assert {op.bytes for op in run.timeline[0]} == {64 * 64 * 4}


def test_mismatch_is_caught_for_every_group_on_its_own():
    def different_groups_differ(rank):
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        dist.all_reduce(torch.ones(4 + rank // 2), group=groups[rank // 2])

    launch(different_groups_differ, 4)


@pytest.mark.parametrize("kind", ["gather", "scatter", "reduce", "all_to_all", "all_gather", "objects"])
def test_forms_with_lists_pass_through_unharmed(kind):
    if kind == "all_to_all" and torch.__version__.startswith("2.11"):
        pytest.skip("gloo of torch 2.11 has no all-to-all of lists")

    def talk(rank):
        x, n = torch.full((2,), float(rank)), 3
        out = [torch.zeros(2) for _ in range(n)]
        if kind == "gather":
            dist.gather(x, out if rank == 1 else None, dst=1)
            return [t[0].item() for t in out] if rank == 1 else None
        if kind == "scatter":
            dist.scatter(x, [torch.full((2,), 10.0 * r) for r in range(n)] if rank == 2 else None, src=2)
            return x[0].item()
        if kind == "reduce":
            dist.reduce(x, dst=0)
            return x[0].item() if rank == 0 else None
        if kind == "all_to_all":
            dist.all_to_all(out, [torch.full((2,), 10.0 * rank + r) for r in range(n)])
            return [t[0].item() for t in out]
        if kind == "all_gather":
            dist.all_gather(out, x)
            return [t[0].item() for t in out]
        objects = [None] * n
        dist.all_gather_object(objects, {"rank": rank})
        return [o["rank"] for o in objects]

    expected = {
        "gather": (None, [0, 1, 2], None),
        "scatter": (0, 10, 20),
        "reduce": (3, None, None),
        "all_to_all": ([0, 10, 20], [1, 11, 21], [2, 12, 22]),
        "all_gather": ([0, 1, 2],) * 3,
        "objects": ([0, 1, 2],) * 3,
    }
    assert launch(talk, 3).values == expected[kind]
