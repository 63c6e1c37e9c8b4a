"""gloo's reduce-scatter as the ring's rule has it: an exchange and a sum on each rank, or a ring.

gloo's own is an all-reduce of which each rank keeps a part, and so sends 2(N - 1)/N · S where (N - 1)/N · S is enough.
Here each rank sends to every other rank that one's part, S/N bytes, and adds up what arrives: the same bytes as in a
ring, in messages of the same size, and the same sums but for rounding. In 16 bit the sum is made in 32 bit and rounded
once. Room for what arrives, S bytes, is held from the issue to the end; a ledger does not see it, nor does it see the
room that gloo takes.

Each rank says what it is ready to receive before it sends. gloo's own all-to-all sends first, and what it says then
waits behind what it sent: between two ranks of which one is later, each sends only when the other has sent, and all
takes twice as long. (Source: pytorch/gloo, gloo/alltoall.cc, and gloo/transport/tcp/pair.cc, where a send waits for the
other side's word.)

Between nodes that hold several ranks of a group the two differ: in a ring one rank of a node sends across its border,
in an exchange each does. Of 2 nodes of 2 ranks the ring sends 0.75 S across, an exchange S. There it is a ring
(`utils.runtime.ring_reduce_scatter`).

`utils.runtime.tap` calls this in place of gloo's reduce-scatter in runs that asked for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work

from utils.runtime.ring_reduce_scatter import Ring, flat_pieces, issue

_ADDABLE = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)


@dataclass(frozen=True)
class Exchange:
    """Sends and receives on their way, of each output. arrived: for each output, one row from each rank.

    mean: divide the sum by the ranks.
    """

    works: tuple[tuple[Work, ...], ...]
    arrived: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]
    mean: bool

    def finish(self) -> list[torch.Tensor]:
        """Wait for what arrives, and add it up in the outputs. Raises what the backend raises when a rank is gone."""
        for works, rows, output in zip(self.works, self.arrived, self.outputs, strict=True):
            for work in works:
                work.wait()
            total = output.data.view(-1)  # as with gloo, autograd hears nothing of what is written
            torch.sum(rows, dim=0, dtype=output.dtype, out=total)
            if self.mean:
                total.div_(len(rows))
        return list(self.outputs)


def begin_exchange(
    keys: Any, arguments: tuple[Any, ...], world_size: int, place: int, ring: bool = False
) -> Exchange | Ring | None:
    """Issue the exchange in place of one of torch's three reduce-scatter ops; None: leave it to the backend.

    keys: the dispatch keys after the tap's. arguments: the op's: outputs, inputs, group, kind of sum, ...
    place: of this rank in the group. ring: whether it is to be a ring, which begins in `finish`. Left to the backend
    is what is no sum or mean, what gloo would not compute (its error is the better one), what lies on a GPU (NCCL's
    own is true already), and a group of one rank, which sends nothing.
    """
    outputs, inputs, group, reduce_op, *_ = arguments
    kind = reduce_op.op()
    if world_size == 1 or kind not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        return None
    mean = kind == dist.ReduceOp.AVG
    parts = _parts(outputs, inputs)
    if not parts or not all(_can_add(output, given, world_size, mean) for output, given in parts):
        return None
    outputs = tuple(output for output, _ in parts)
    pieces = tuple(flat_pieces(given, world_size) for _, given in parts)
    if ring:
        return Ring(keys, group, place, outputs, pieces, mean)
    arrived = tuple(output.new_empty(world_size, output.numel(), requires_grad=False) for output in outputs)
    works = [_exchange(keys, group, place, rows, each) for rows, each in zip(arrived, pieces, strict=True)]
    return Exchange(tuple(works), arrived, outputs, mean)


def _exchange(
    keys: Any, group: Any, place: int, rows: torch.Tensor, pieces: Sequence[torch.Tensor]
) -> tuple[Work, ...]:
    """Begin to receive a row from each other rank, then to send each its piece."""
    n = len(pieces)
    receiving = [issue(keys, torch.ops.c10d.recv_, rows[(place - k) % n], group, (place - k) % n) for k in range(1, n)]
    sending = [issue(keys, torch.ops.c10d.send, pieces[(place + k) % n], group, (place + k) % n) for k in range(1, n)]
    rows[place].copy_(pieces[place])
    return (*receiving, *sending)


def _parts(outputs: Any, inputs: Any) -> list[tuple[torch.Tensor, torch.Tensor | Sequence[torch.Tensor]]]:
    """(output, its input): the input is one tensor, or one for each rank."""
    return [(outputs, inputs)] if isinstance(outputs, torch.Tensor) else list(zip(outputs, inputs, strict=True))


def _can_add(output: torch.Tensor, given: torch.Tensor | Sequence[torch.Tensor], world_size: int, mean: bool) -> bool:
    """Whether gloo would compute it, and a sum by `torch.sum` is the same."""
    if isinstance(given, torch.Tensor):
        pieces, fits = [given], given.numel() == world_size * output.numel()
    else:
        pieces = given
        fits = len(pieces) == world_size and all(each.numel() == output.numel() for each in pieces)
    return (
        fits
        and output.numel() > 0
        and output.dtype in _ADDABLE
        and (output.is_floating_point() or not mean)
        and all(each.dtype == output.dtype for each in pieces)
        and all(t.layout is torch.strided and t.device.type == "cpu" and t.is_contiguous() for t in (output, *pieces))
    )
