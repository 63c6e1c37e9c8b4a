"""What each collective leaves on each rank, and who sends to whom under the ring's rules.

A rank's buffer is cut into as many chunks as the collective needs: n (one per rank) where chunks go different ways,
one where the buffer travels whole. Source of the definitions: the MPI standard, chapter "Collective Communication",
as torch.distributed implements them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from utils.theory.traffic import check_group


@dataclass(frozen=True)
class Block:
    """One chunk of a buffer on some rank: the sum of chunk number `chunk` of the ranks `origins` (one or more)."""

    origins: tuple[int, ...]
    chunk: int


# By rank, by place in the buffer; None where the rank holds nothing that takes part.
Holdings = tuple[tuple[Block | None, ...], ...]


@dataclass(frozen=True)
class Message:
    """What rank `source` sends to rank `target` in all steps together: `share` n-ths of S."""

    source: int
    target: int
    share: int


_MOST_LISTED = 1000  # ranks, of which each may stand beside each

# In words, to follow "afterwards". {root} is the root's number.
LEAVES = {
    "all_reduce": "every rank holds the sum of all buffers",
    "all_gather": "every rank holds the chunks of all ranks",
    "reduce_scatter": "rank r holds chunk r of the sum of all buffers",
    "all_to_all": "rank r holds chunk r of every rank",
    "broadcast": "every rank holds the buffer of rank {root}",
    "reduce": "rank {root} alone holds the sum of all buffers",
    "scatter": "rank r holds chunk r of rank {root}",
    "gather": "rank {root} holds the chunks of all ranks",
    "send": "rank {target} holds the buffer of rank {root} too",
}


def leaves(kind: str, world_size: int, root: int = 0) -> str:
    """In words: what is true after the collective. Errors as for `holdings`."""
    check_group(kind, world_size, root, kinds=tuple(LEAVES))
    world_size, root = int(world_size), int(root)
    return LEAVES[kind].format(root=root, target=(root + 1) % world_size)


def holdings(kind: str, world_size: int, root: int = 0) -> tuple[Holdings, Holdings]:
    """(before, after): what every rank holds before and after a collective.

    "send" goes from `root` to the next rank. `root` is ignored where there is none.
    Raises ValueError for an unknown kind, a world size below 1 or above 1000, a root outside the group.
    """
    check_group(kind, world_size, root, kinds=tuple(LEAVES), most=_MOST_LISTED)
    world_size, root = int(world_size), int(root)
    ranks = range(world_size)
    all_ranks = tuple(ranks)
    whole = kind in ("broadcast", "reduce", "send")
    chunks = range(1 if whole else world_size)

    def own(rank: int) -> tuple[Block, ...]:
        return tuple(Block((rank,), chunk) for chunk in chunks)

    nothing = tuple(None for _ in chunks)
    everyone = tuple(own(rank) for rank in ranks)
    root_alone = tuple(own(rank) if rank == root else nothing for rank in ranks)
    one_each = tuple(tuple(Block((rank,), c) if c == rank else None for c in chunks) for rank in ranks)
    gathered = tuple(Block((chunk,), chunk) for chunk in chunks)
    summed = tuple(Block(all_ranks, chunk) for chunk in chunks)

    def only_chunk(blocks: tuple[Block, ...], rank: int) -> tuple[Block | None, ...]:
        return tuple(block if place == rank else None for place, block in enumerate(blocks))

    match kind:
        case "all_reduce":
            return everyone, tuple(summed for _ in ranks)
        case "reduce_scatter":
            return everyone, tuple(only_chunk(summed, rank) for rank in ranks)
        case "all_gather":
            return one_each, tuple(gathered for _ in ranks)
        case "all_to_all":
            return everyone, tuple(tuple(Block((origin,), rank) for origin in ranks) for rank in ranks)
        case "broadcast":
            return root_alone, tuple(own(root) for _ in ranks)
        case "reduce":
            return everyone, tuple(summed if rank == root else own(rank) for rank in ranks)
        case "scatter":
            return root_alone, tuple(only_chunk(own(root), rank) for rank in ranks)
        case "gather":
            return one_each, tuple(gathered if rank == root else one_each[rank] for rank in ranks)
        case _:  # send
            target = (root + 1) % world_size
            return root_alone, tuple(own(root) if rank in (root, target) else nothing for rank in ranks)


def messages(kind: str, world_size: int, root: int = 0) -> tuple[Message, ...]:
    """Who sends how much to whom under the ring's rules, as `traffic.collective_bytes` counts it; errors likewise."""
    check_group(kind, world_size, root, kinds=tuple(LEAVES), most=_MOST_LISTED)
    n, root = int(world_size), int(root)
    if n == 1:
        return ()
    others = [rank for rank in range(n) if rank != root]
    in_line = [(root + place) % n for place in range(n)]  # the root first, then along the ring
    match kind:
        case "all_reduce":
            return tuple(Message(rank, (rank + 1) % n, 2 * (n - 1)) for rank in range(n))
        case "all_gather" | "reduce_scatter":
            return tuple(Message(rank, (rank + 1) % n, n - 1) for rank in range(n))
        case "all_to_all":
            return tuple(Message(a, b, 1) for a in range(n) for b in range(n) if a != b)
        case "broadcast":
            return tuple(Message(a, b, n) for a, b in pairwise(in_line))
        case "reduce":
            into_root = [*in_line[1:], root]
            return tuple(Message(a, b, n) for a, b in pairwise(into_root))
        case "scatter":
            return tuple(Message(root, rank, 1) for rank in others)
        case "gather":
            return tuple(Message(rank, root, 1) for rank in others)
        case _:  # send
            return (Message(root, (root + 1) % n, n),)
