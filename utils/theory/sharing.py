"""How the transfers on one link share it: first come, first served, a few at a time.

Two ways to share among those that are served together:

- evenly: each gets the same part of the rate at every moment (the limit of very small pieces);
- by turns: each sends one piece when it is its turn, and the others wait meanwhile. gloo's collectives between two
  ranks go through one connection, each cut into pieces; see `ring_pieces`. gloo keeps two pieces of each in flight, so
  that now and then one gets two out before the other gets one; measured times differ by up to one piece then. When all
  are through does not depend on how they share.

NCCL serves the collectives of one communicator one after the other, gloo two at a time (its two threads). Source of
gloo's number: torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, `Options`.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_ranks, check_whole, check_yes_or_no
from utils.theory.traffic import RING_PASSES, check_group
from utils.theory.units import MiB, plain

NCCL_CONCURRENCY, GLOO_CONCURRENCY = 1, 2
GLOO_PIECE = 1 * MiB  # bytes of a piece at most. Source: pytorch/gloo, gloo/allreduce.h
_ETHERNET, _IP, _TCP = 14, 20, 32  # bytes of headers; TCP's with its time stamps


@dataclass(frozen=True)
class Link:
    """What joins ranks, seen from one of them.

    bytes_per_second: of payload in one direction, above 0; `tcp_goodput` gives it for a set rate.
    latency: seconds that one step of a collective takes before its bytes flow.
    concurrency: how many transfers are served at a time; the others wait in the order of their issue.
    by_turns: whether those share the link piece by piece instead of evenly.
    burst: bytes that a link lets pass at once when it was idle long enough to have carried them: a token bucket's size.
    by_messages: whether a simulated step cuts gathers and reduce-scatters into the messages that gloo sends, and lets
        these queue: see `utils.theory.gloo_messages`.
    Raises ValueError, in one sentence, for a value out of range.
    """

    bytes_per_second: float
    latency: float = 0.0
    concurrency: int = NCCL_CONCURRENCY
    by_turns: bool = False
    burst: float = 0.0
    by_messages: bool = False

    def __post_init__(self) -> None:
        check_amount("bytes_per_second", self.bytes_per_second, "the link's rate", "such as 125 * MB for 1 Gbit/s")
        check_amount("latency", self.latency, "a time in seconds", "such as 0.005", least=0)
        check_whole("concurrency", self.concurrency, "how many transfers are served at a time")
        check_yes_or_no("by_turns", self.by_turns)
        check_amount("burst", self.burst, "bytes that an idle link lets pass at once", "such as 64 * KiB", least=0)
        check_yes_or_no("by_messages", self.by_messages)
        object.__setattr__(self, "bytes_per_second", float(self.bytes_per_second))
        object.__setattr__(self, "latency", float(self.latency))
        object.__setattr__(self, "concurrency", int(self.concurrency))
        object.__setattr__(self, "burst", float(self.burst))

    def alone(self, size: float, steps: int = 1) -> float:
        """Seconds that `size` bytes in `steps` steps take when nothing else is on the link."""
        check_amount("size", size, "a size in bytes", "such as 4 * MiB", least=0)
        check_whole("steps", steps, "how often the latency is paid", least=0)
        return int(steps) * self.latency + plain(size) / self.bytes_per_second


def tcp_goodput(bytes_per_second: float, mtu: int = 1500) -> float:
    """Bytes of payload per second that TCP brings through a link of that rate.

    A packet of `mtu` bytes carries 52 bytes of IP and TCP headers and travels in a frame of 14 bytes more: 0.956 of the
    rate at 1500, 0.993 at 9000. Sources: RFC 791, RFC 9293, RFC 7323 (time stamps), IEEE 802.3.
    Raises ValueError for a rate that is not above 0, or an MTU below 68 (RFC 791's least).
    """
    check_amount("bytes_per_second", bytes_per_second, "the link's rate", "such as 125 * MB for 1 Gbit/s")
    check_whole("mtu", mtu, "the bytes of a packet", least=68, most=65535)
    return float(bytes_per_second) * (int(mtu) - _IP - _TCP) / (int(mtu) + _ETHERNET)


def ring_steps(kind: str, world_size: int) -> int:
    """How many steps, one after the other, a ring takes: n - 1, and twice that for an all-reduce.

    kind: "all_reduce", "all_gather" or "reduce_scatter". Errors as for `traffic.collective_bytes`.
    """
    check_group(kind, world_size, 0, kinds=tuple(RING_PASSES))
    return RING_PASSES[kind] * (int(world_size) - 1)


def ring_pieces(total_bytes: float, world_size: int, bytes_per_element: int = 4) -> int:
    """How many pieces gloo's ring all-reduce of `total_bytes` sends from each rank.

    Each of the n chunks is cut into at least two pieces of at most 1 MiB, as long as it has two elements; a rank sends
    2 (n - 1) chunks. Source: pytorch/gloo, gloo/allreduce.cc. Raises ValueError for a size or world size below 1.
    """
    check_amount("total_bytes", total_bytes, "the size of a buffer in bytes", "such as 4 * MiB")
    check_ranks("world_size", world_size)
    check_whole("bytes_per_element", bytes_per_element, "the size of an element in bytes")
    n, total_bytes = int(world_size), plain(total_bytes)
    pieces = max(2, math.ceil(total_bytes / n / GLOO_PIECE))
    elements = max(1, math.ceil(total_bytes / n / int(bytes_per_element)))
    return max(1, 2 * (n - 1) * min(pieces, elements))


class _Flow:
    """A transfer that is served: `left` seconds of the whole link, `opens`: when its bytes begin to flow."""

    __slots__ = ("left", "number", "opens", "piece", "whole")

    def __init__(self, number: int, opens: float, seconds: float, pieces: int) -> None:
        self.number, self.opens, self.left, self.whole = number, opens, seconds, seconds
        self.piece = seconds / pieces


class Server:
    """A link at work. `issue` hands it a transfer, `next_change` says when something happens, `advance` lets it.

    Between two calls nothing changes: the caller never advances beyond `next_change`.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._waiting: deque[tuple[int, float, int, int]] = deque()
        self._served: list[_Flow] = []
        self._now = 0.0
        self._due = math.inf  # when the next transfer or piece is through
        self._turn: _Flow | None = None
        self._idle_since = 0.0
        self._saved_up = link.burst / link.bytes_per_second  # seconds of bytes that may pass at once

    def issue(self, number: int, size: float, steps: int, pieces: int) -> None:
        self._waiting.append((number, size / self.link.bytes_per_second, steps, pieces))

    def admit(self, now: float) -> list[int]:
        """The transfers that are served from now on, in order of issue."""
        admitted = []
        while self._waiting and len(self._served) < self.link.concurrency:
            number, seconds, steps, pieces = self._waiting.popleft()
            opens = now + steps * self.link.latency
            if self.link.burst and not self._served:
                most = self.link.burst / self.link.bytes_per_second
                self._saved_up = min(most, self._saved_up + opens - self._idle_since)
                seconds, self._saved_up = max(0.0, seconds - self._saved_up), max(0.0, self._saved_up - seconds)
            self._served.append(_Flow(number, opens, seconds, pieces))
            admitted.append(number)
        return admitted

    def next_change(self) -> float:
        """When a transfer begins to flow or is through; infinite while there is nothing to do."""
        now, opens = self._now, math.inf
        flowing, least = 0, math.inf
        for flow in self._served:
            if flow.opens > now:
                opens = min(opens, flow.opens)
                continue
            if self.link.by_turns and self._turn is None:
                self._turn, self._due = flow, now + min(flow.piece, flow.left)
            flowing += 1
            least = min(least, flow.left)
        if self.link.by_turns:
            return opens if self._turn is None else self._due
        self._due = now + flowing * least if flowing else math.inf
        return min(self._due, opens)

    def advance(self, now: float) -> list[int]:
        """Move on to `now`; the transfers that are through by then."""
        before, self._now = self._now, now
        if not self._served:
            return []
        if self.link.by_turns:
            return self._end_turn() if self._turn and now >= self._due else []
        flowing = [flow for flow in self._served if flow.opens <= before]
        if not flowing:
            return []
        through = []
        if now >= self._due:
            # Those that are through together have the least left, but for rounding.
            least = min([flow.left for flow in flowing])
            through = [flow for flow in flowing if flow.left <= least + 1e-12 * flow.whole]
        share = (now - before) / len(flowing)
        for flow in flowing:
            flow.left = max(0.0, flow.left - share)
        return self._leave(through)

    def _end_turn(self) -> list[int]:
        flow, self._turn, self._due = self._turn, None, math.inf
        flow.left -= flow.piece
        if flow.left <= 1e-9 * flow.whole:
            return self._leave([flow])
        self._served.remove(flow)
        self._served.append(flow)
        return []

    def _leave(self, through: list[_Flow]) -> list[int]:
        for flow in through:
            self._served.remove(flow)
        if through and not self._served:
            self._idle_since = self._now
        return [flow.number for flow in through]
