"""The life of sharded parameters in a step: which units a rank holds whole at each event, and the bytes of that.

A unit is what FSDP gathers at once, usually one layer. L equal units on N ranks: 1/N of the parameters at rest,
1/N + 1/L inside a unit in forward, 1/N + 2/L in backward with one unit prefetched, 1/N + 1/L for the last one there;
and the root, gathered once, on top. The shard stays where it is: a gathered copy is made beside it.

Sources: Zhao et al., "PyTorch FSDP", VLDB 2023, arXiv:2304.11277, sections 3.2 and 3.3; PyTorch 2.13,
torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (`unshard`, `wait_for_unshard`, `_backward_prefetch`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_ranks, check_whole, check_yes_or_no
from utils.theory.units import plain, shown

#: The life of a unit that is resharded after forward, event by event.
LIFE = ("shard", "all_gather", "forward", "free", "all_gather", "backward", "reduce_scatter", "shard")
_MOST_UNITS = 10_000


@dataclass(frozen=True)
class Held:
    """Bytes of parameters that a rank holds at one event of a step.

    phase, unit, done: as in a ledger's sample: "forward" or "backward" of a unit, or of the whole model (None).
    shards: the rank's parts, always there. gathered: whole units. arriving: units gathered ahead, in the buffer that
    they arrive in. kept: parts that were kept after forward, for a gather in a smaller group. leftover: the buffer of
    the latest gather, where it is freed late.
    """

    phase: str
    unit: int | None
    done: bool
    shards: float
    gathered: float = 0.0
    arriving: float = 0.0
    kept: float = 0.0
    leftover: float = 0.0

    @property
    def bytes(self) -> float:
        return self.shards + self.gathered + self.arriving + self.kept + self.leftover

    @property
    def label(self) -> str:
        """ "forward of 0 begins", "backward done": as a ledger calls the same event."""
        of = "" if self.unit is None else f" of {self.unit}"
        return f"{self.phase}{of} {'done' if self.done else 'begins'}"


@dataclass(frozen=True)
class Lifecycle:
    """A step of a sharded model, event after event. whole: bytes of all ranks' shards together."""

    events: tuple[Held, ...]
    whole: float

    @property
    def at_rest(self) -> float:
        """Bytes of the rank's shards alone."""
        return self.events[-1].shards

    @property
    def peak(self) -> Held:
        """The first event with the most bytes."""
        return max(self.events, key=lambda event: event.bytes)

    def __getitem__(self, label: str) -> Held:
        for event in self.events:
            if event.label == label:
                return event
        known = ", ".join(repr(event.label) for event in self.events[:3])
        raise KeyError(f"no event {label!r}; there are {known}, … {self.events[-1].label!r}")


def lifecycle(
    units: Iterable[float],
    world_size: int,
    *,
    root: float = 0,
    reshard: bool | int = True,
    forward_prefetch: int = 0,
    backward_prefetch: int = 1,
    shard_bytes: float = 4,
    gathered_bytes: float | None = None,
    late_free: bool = False,
) -> Lifecycle:
    """What a rank holds of the parameters at each event of a step with `fully_shard`, when nothing is left over.

    Args:
        units: parameters of each unit, in forward order. root: parameters that no unit has; they are gathered when
            forward begins and kept until backward is done, as `fully_shard` does with the root's.
        reshard: `reshard_after_forward` of the units. True: freed after forward. False: kept, and not gathered again. A
            number: kept in parts of one in so many, a divisor of `world_size`.
        forward_prefetch, backward_prefetch: units gathered ahead of the one in use. PyTorch's own: 0 and 1 (unless
            `set_modules_to_forward_prefetch` and `set_modules_to_backward_prefetch` say otherwise).
        shard_bytes, gathered_bytes: per parameter, at rest and in a gathered copy (the same if left out).
        late_free: a gather of the forward pass leaves the buffer that it arrived in until the next is copied out. So
            does PyTorch, unless it gathers asynchronously (`_set_unshard_async_op`).

    Raises ValueError for a value out of range.
    """
    units = _checked_units(units)
    check_ranks("world_size", world_size)
    check_amount("root", root, "parameters that no unit has", "such as 0", least=0)
    for name, depth in (("forward_prefetch", forward_prefetch), ("backward_prefetch", backward_prefetch)):
        check_whole(name, depth, "a number of units gathered ahead", least=0, most=_MOST_UNITS)
    check_amount("shard_bytes", shard_bytes, "bytes per parameter", "such as 4")
    gathered_bytes = shard_bytes if gathered_bytes is None else gathered_bytes
    check_amount("gathered_bytes", gathered_bytes, "bytes per parameter", "such as 2")
    check_yes_or_no("late_free", late_free)
    part = _part_kept(reshard, world_size)
    whole = [float(gathered_bytes) * unit for unit in units]
    shards = float(shard_bytes) * (sum(units) + plain(root)) / int(world_size)
    root_bytes = float(gathered_bytes) * plain(root)
    late = 1.0 if late_free else 0.0
    last = len(units) - 1

    def event(phase: str, unit: int | None, done: bool, *use: float) -> Held:
        gathered, arriving, kept, leftover = use
        return Held(phase, unit, done, shards, root_bytes + gathered, arriving, kept, leftover)

    events = [event("forward", None, False, 0, 0, 0, late * root_bytes)]
    for i in range(len(units)):
        before = sum(whole[:i])  # what the units that had their turn have left: all, a part, or nothing
        stay, kept = (before, 0.0) if reshard is False else (0.0, part * before)
        ahead = sum(whole[i + 1 : i + 1 + int(forward_prefetch)])
        events.append(event("forward", i, False, stay + whole[i], ahead, kept, late * whole[i]))
        stays, keeps = (whole[i], 0.0) if reshard is False else (0.0, part * whole[i])
        events.append(event("forward", i, True, stay + stays, ahead, kept + keeps, late * whole[i]))
    everything = sum(whole)
    stay, kept = (everything, 0.0) if reshard is False else (0.0, part * everything)
    events.append(event("forward", None, True, stay, 0, kept, 0))

    def backward(i: int) -> tuple[float, float, float, float]:
        """Inside the backward of unit i; with i = last + 1 inside the root's."""
        first = max(0, i - int(backward_prefetch))
        inside = whole[i] if i <= last else 0.0
        if reshard is False:
            return sum(whole[:i]) + inside, 0.0, 0.0, 0.0
        return inside, sum(whole[first:i]), part * sum(whole[:i]), 0.0

    events.append(event("backward", None, False, *backward(last + 1 if root else last)))
    events.extend(event("backward", i, False, *backward(i)) for i in reversed(range(len(units))))
    events.append(Held("backward", None, True, shards))
    return Lifecycle(tuple(events), float(shard_bytes) * (sum(units) + plain(root)))


def hiding_bandwidth(
    unit_bytes: float, world_size: int, forward_seconds: float, backward_seconds: float | None = None
) -> float:
    """Bytes per second of the slowest link that hides all but the first gather, where units are equal and prefetched.

    In forward a unit's gather travels while the one before computes; in backward a gather and a reduce-scatter do.
    Each sends (N - 1)/N of `unit_bytes`. backward_seconds: twice forward's if left out. Raises ValueError for a value
    that is not above 0, or fewer than 2 ranks.
    """
    check_amount("unit_bytes", unit_bytes, "a size in bytes", "such as 4 * MiB")
    check_whole("world_size", world_size, "a number of ranks", least=2)
    check_amount("forward_seconds", forward_seconds, "a duration", "such as 0.010")
    backward_seconds = 2 * forward_seconds if backward_seconds is None else backward_seconds
    check_amount("backward_seconds", backward_seconds, "a duration", "such as 0.020")
    sent = (int(world_size) - 1) / int(world_size) * float(unit_bytes)
    return max(sent / float(forward_seconds), 2 * sent / float(backward_seconds))


def _checked_units(units: Iterable[float]) -> tuple[float, ...]:
    if not isinstance(units, Iterable) or isinstance(units, str | bytes):
        raise ValueError(f"units is {shown(units)}; give the parameters of each unit, such as [1e6] * 4")
    found = tuple(units)
    if not 1 <= len(found) <= _MOST_UNITS:
        raise ValueError(f"units has {len(found)} entries; give 1 to {_MOST_UNITS:,}, the parameters of each unit")
    for number, unit in enumerate(found):
        check_amount(f"unit {number}", unit, "a number of parameters", "such as 1e6")
    return tuple(plain(unit) for unit in found)


def _part_kept(reshard: bool | int, world_size: int) -> float:
    """The part of a unit that stays after its forward, beside the shard: 0, or 1 in `reshard`."""
    if reshard is True or reshard is False:
        return 0.0
    check_whole("reshard", reshard, "a number of ranks, or True, or False", least=1, most=world_size)
    if world_size % int(reshard):
        raise ValueError(
            f"reshard is {reshard}; a smaller group has a divisor of the {world_size} ranks: give one, or True or False"
        )
    return 0.0 if reshard == world_size else 1 / int(reshard)
