"""A reduce-scatter around a ring of sends, in the group's order of ranks: one message in and one out in each step.

Of N parts each rank begins with the part of the rank before it. In each of N - 1 steps it passes on what it carries,
and adds its own numbers to the part that arrives; the last that arrives is its own part. Where neighbours of the ring
share a node, one rank of the node sends across its border. In 16 bit each step rounds, as NCCL's ring does.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._distributed_c10d import Work

_TAG = 2**30 + 11  # no learner's: messages of one tag between two ranks are matched in their order


@dataclass(frozen=True)
class Ring:
    """A ring that is still to go round. place: of this rank in the group. pieces: for each output, a part per rank.

    keys: the dispatch keys after the tap's, so that no send is recorded. mean: divide the sum by the ranks.
    """

    keys: Any
    group: Any
    place: int
    outputs: tuple[torch.Tensor, ...]
    pieces: tuple[tuple[torch.Tensor, ...], ...]
    mean: bool

    def finish(self) -> list[torch.Tensor]:
        """Go round once for each output. Rings of one group have to go one after the other, on all ranks in one order.

        Raises what the backend raises when a rank is gone.
        """
        for output, pieces in zip(self.outputs, self.pieces, strict=True):
            total = output.data.view(-1)  # as with gloo, autograd hears nothing of what is written
            self._round(total, pieces)
            if self.mean:
                total.div_(len(pieces))
        return list(self.outputs)

    def _round(self, total: torch.Tensor, pieces: Sequence[torch.Tensor]) -> None:
        n, me = len(pieces), self.place
        carried, rooms = pieces[me - 1], [torch.empty_like(total) for _ in range(min(2, n - 1))]
        for step in range(n - 1):
            room = rooms[step % 2]  # the other one may still be on its way out
            arrives = issue(self.keys, torch.ops.c10d.recv_, room, self.group, (me - 1) % n)
            sent = issue(self.keys, torch.ops.c10d.send, carried, self.group, (me + 1) % n)
            arrives.wait()
            torch.add(room, pieces[(me - step - 2) % n], out=total if step == n - 2 else room)
            sent.wait()
            carried = room


def issue(keys: Any, op: Any, tensor: torch.Tensor, group: Any, peer: int) -> Work:
    """Begin a send or a receive that no record sees. keys: the dispatch keys after the tap's; peer: in the group."""
    return Work.unbox(op.default.redispatch(keys, [tensor], group, peer, _TAG))


def flat_pieces(given: torch.Tensor | Sequence[torch.Tensor], world_size: int) -> tuple[torch.Tensor, ...]:
    """What a rank gives for each rank, as flat tensors: parts of one, or one for each."""
    given = given.data.view(-1).chunk(world_size) if isinstance(given, torch.Tensor) else given
    return tuple(each.data.view(-1) for each in given)
