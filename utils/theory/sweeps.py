"""Measured speeds of all-reduce by message size on GPU clusters, and what can be read between the sizes measured.

Two numbers, alpha and beta, do not describe a library that changes its algorithm with the size; a sweep does. Between
two neighbouring sizes a `Sweep` takes time as alpha + beta · S through both. Left out one at a time and so predicted
from its neighbours, which lie up to 16 times apart, a measured time is missed by 4 to 11% on average, a sweep of four
sizes by 19%, and at worst by 31%; straight lines between logarithms miss by 6 to 15% (22%), at worst by 55%.

The figures lie in data/busbw_sweeps.csv, each with its source. Times are as printed, or follow from the bus bandwidth
where only that was. One row (32 KiB on 4 x 8 B200) is left out: printed as 0.01 GB/s, it has no digit to compute with.

Bus bandwidth may lie above the link's rate, 480 GB/s on links of 450: it divides what a *ring* would send by the time,
and inside an NVLink domain the switch itself can add (NVLS, "NVLink SHARP"), so that less is sent. Neither algbw
nor busbw is the rate on the wire then, as NCCL's maintainers say (nccl-tests issue 212). `in_switch_bytes` says how
much is sent.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from utils.theory.arguments import check_amount, check_choice, check_ranks, check_yes_or_no
from utils.theory.traffic import bus_bandwidth, collective_bytes
from utils.theory.units import GB, format_bytes, plain, shown


@dataclass(frozen=True)
class Sweep:
    """Times of one collective by size on one cluster.

    measured: (bytes, seconds) by rising size. points: the same, but never falling: sent as a larger message, a
    smaller one takes no longer, so a time above that of a larger message is replaced by the latter.
    """

    name: str
    kind: str
    nodes: int
    gpus_per_node: int
    measured: tuple[tuple[int, float], ...]
    points: tuple[tuple[int, float], ...]
    source: str

    def __repr__(self) -> str:
        return f"Sweep({self.name}: {self.kind}, {len(self.measured)} sizes)"

    @property
    def world_size(self) -> int:
        return self.nodes * self.gpus_per_node

    def covers(self, total_bytes: float) -> bool:
        """Whether a size lies between the smallest and the largest measured."""
        check_amount("total_bytes", total_bytes, "a size in bytes", "such as 4 * MiB", least=0)
        return self.points[0][0] <= total_bytes <= self.points[-1][0]

    def seconds(self, total_bytes: float, extrapolate: bool = False) -> float:
        """Time of a collective of S bytes.

        extrapolate: False refuses sizes that were not covered. True takes a smaller one as long as the smallest
        measured, and a larger one at the rate of the largest; `covers` tells which figures are such.
        Raises ValueError, in one sentence, naming the size and the range measured.
        """
        check_yes_or_no("extrapolate", extrapolate)
        if not self.covers(total_bytes) and not extrapolate:
            least, most = (format_bytes(size) for size in (self.points[0][0], self.points[-1][0]))
            raise ValueError(
                f"total_bytes is {format_bytes(total_bytes)}; {self.name} was measured from {least} to {most}: give a "
                "size in that range, or extrapolate=True"
            )
        return _between(self.points, plain(total_bytes))

    def bus_bandwidth(self, total_bytes: float, extrapolate: bool = False) -> float:
        """Bytes per second, as nccl-tests defines it, of a collective of S bytes; as for `seconds`."""
        return bus_bandwidth(self.kind, total_bytes, self.world_size, self.seconds(total_bytes, extrapolate))


@cache
def sweeps() -> dict[str, Sweep]:
    """All sweeps by name, read from the file when first asked for."""
    import csv  # for the file alone

    text = (Path(__file__).parent / "data" / "busbw_sweeps.csv").read_text(encoding="utf-8")
    grouped: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(text.splitlines()):
        grouped.setdefault(row["sweep"], []).append(row)
    return {name: _sweep(name, rows) for name, rows in grouped.items()}


def sweep(name: str) -> Sweep:
    """The sweep of that name; ValueError with the nearest names if there is none."""
    check_choice("sweep", name, sweeps())
    return sweeps()[name]


def left_out_errors(measured: Sweep) -> dict[int, float]:
    """By size, except the first and last: relative error of the time predicted from the other sizes alone."""
    if not isinstance(measured, Sweep):
        raise ValueError(f"measured is {shown(measured)}; give a Sweep, as sweep(name) does")
    points = measured.measured
    return {
        size: _between(_never_falling(points[:i] + points[i + 1 :]), size) / seconds - 1
        for i, (size, seconds) in enumerate(points)
        if 0 < i < len(points) - 1
    }


def in_switch_bytes(total_bytes: float, world_size: int) -> float:
    """Bytes that a GPU sends, and receives, in an all-reduce of S bytes that the NVLink switch adds up.

    Each of n GPUs looks after one n-th of the buffer: it has the switch read that part from all n and return the sum,
    and sends the sum to the switch, which gives it to all n. So a GPU sends S as its parts are read, and S / n more:
    (n + 1) / n · S, against the ring's 2 (n - 1) / n · S. From 4 GPUs on that is less.
    Errors as for `traffic.collective_bytes`.
    """
    check_ranks("world_size", world_size, "a number of GPUs")
    check_amount("total_bytes", total_bytes, "a size in bytes", "such as 4 * GB", least=0)
    n = int(world_size)
    return (n + 1) * plain(total_bytes) / n if n > 1 else 0.0


def in_switch_bus_bandwidth(rate: float, world_size: int) -> float:
    """Bus bandwidth of that all-reduce when each GPU sends at `rate` bytes per second: rate · 2 (n - 1) / (n + 1).

    With 8 GPUs that is 1.56 times the rate. Published figures for 4 to 8 GPUs agree on one rate within 3%: about
    309 GB/s on H100 and H200 (of 450), 542 GB/s on B200 (of 900).
    """
    check_amount("rate", rate, "what a GPU sends, in bytes per second", "such as 309 * GB")
    check_ranks("world_size", world_size, "a number of GPUs", least=2)
    return plain(rate) * collective_bytes("all_reduce", 1, world_size) / in_switch_bytes(1, world_size)


def _sweep(name: str, rows: list[dict[str, str]]) -> Sweep:
    first = rows[0]
    nodes, gpus = int(first["nodes"]), int(first["gpus_per_node"])

    def seconds(row: dict[str, str]) -> float:
        if row["microseconds"]:
            return float(row["microseconds"]) / 1e6
        return collective_bytes(row["kind"], int(row["size_bytes"]), nodes * gpus) / (float(row["busbw_GBps"]) * GB)

    measured = tuple(sorted((int(row["size_bytes"]), seconds(row)) for row in rows))
    source = f"{first['source']} ({first['software']})"
    return Sweep(name, first["kind"], nodes, gpus, measured, _never_falling(measured), source)


def _never_falling(points: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    """Each time the least of its own and those of all larger sizes."""
    least, backwards = float("inf"), []
    for size, seconds in reversed(points):
        least = min(least, seconds)
        backwards.append((size, least))
    return tuple(reversed(backwards))


def _between(points: tuple[tuple[int, float], ...], size: float) -> float:
    """Seconds on the straight line through the neighbours; constant below all sizes, in proportion above them."""
    if size <= points[0][0]:
        return points[0][1]
    if size >= points[-1][0]:
        return points[-1][1] * size / points[-1][0]
    i = bisect_left(points, (size, 0.0))
    (smaller, before), (larger, after) = points[i - 1], points[i]
    return before + (after - before) * (size - smaller) / (larger - smaller)
