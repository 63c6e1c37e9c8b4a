"""The two theories of collectives against real ranks: what is left on each, and what crosses the wire under gloo."""

import pytest
import torch
import torch.distributed as dist

from utils import all_gather_single, launch, reduce_scatter_single
from utils.theory.collectives import LEAVES, holdings
from utils.theory.traffic import traffic_by_rank
from utils.theory.units import MiB

KINDS = tuple(LEAVES)
ROOT = 1


def run(kind, length, root, start):
    """In a rank: issue one collective on `length` numbers that begin with `start`; what this rank then holds."""
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = start + torch.zeros(length)
    whole += torch.arange(length) // (length // n)  # chunk c of rank r holds 10 r + c
    part = whole[rank * length // n : (rank + 1) * length // n].clone()
    out = torch.zeros_like(whole)
    match kind:
        case "broadcast":
            dist.broadcast(whole, root)
        case "all_reduce":
            dist.all_reduce(whole)
        case "reduce":
            dist.reduce(whole, root)
        case "all_gather":
            all_gather_single(out, part)
            return out
        case "reduce_scatter":
            reduce_scatter_single(part, whole)
            return part
        case "all_to_all":
            dist.all_to_all_single(out, whole)
            return out
        case "scatter":
            dist.scatter(part, list(whole.chunk(n)) if rank == root else None, src=root)
            return part
        case "gather":
            dist.gather(part, list(out.chunk(n)) if rank == root else None, dst=root)
            return out if rank == root else part
        case "send":
            if rank == root:
                dist.send(whole, (root + 1) % n)
            elif rank == (root + 1) % n:
                dist.recv(whole, root)
    return whole


def left_on_each(rank, root):
    return {kind: run(kind, dist.get_world_size(), root, 10 * rank).tolist() for kind in KINDS}


@pytest.mark.parametrize("n", [2, 4])
def test_real_ranks_hold_what_the_theory_says(n):
    values = launch(left_on_each, n, ROOT).values
    for kind in KINDS:
        after = holdings(kind, n, ROOT)[1]
        for rank in range(n):
            if kind == "reduce" and rank != ROOT:
                continue  # torch.distributed leaves the others' buffers undefined
            blocks = [block for block in after[rank] if block]
            if len(after[rank]) == 1:  # the buffer is one block: it holds the numbers of every chunk
                chunks = range(n) if blocks else ()
                expected = [sum(10 * origin + chunk for origin in blocks[0].origins) for chunk in chunks]
            else:
                expected = [sum(10 * origin + block.chunk for origin in block.origins) for block in blocks]
            if expected:
                assert values[rank][kind] == expected, f"{kind} on {n} ranks, rank {rank}"


def issue(rank, kind, total_bytes):
    run(kind, total_bytes // 4, ROOT, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_gloo_moves_what_its_rules_say(kind):
    """A new version of torch that moves other bytes shows here first."""
    n, size = 4, 4 * MiB
    wire = launch(issue, n, kind, size, backend="gloo").wire_bytes
    if wire is None:
        pytest.skip("needs the kernel's TCP counters, and this system has none")
    for rank, law in enumerate(traffic_by_rank(kind, size, n, ROOT, rules="gloo")):
        assert wire[rank].sent / size == pytest.approx(law.sent / size, abs=0.02), f"sent by rank {rank}"
        assert wire[rank].received / size == pytest.approx(law.received / size, abs=0.02), f"received by rank {rank}"
