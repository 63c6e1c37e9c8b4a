"""What a run of ranks gave back."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from utils.runtime.kernel_link import LinkBytes
from utils.runtime.recorder import Op
from utils.runtime.wire import WireBytes


@dataclass(frozen=True)
class Timeline:
    """Operations by rank, in the order of their issue. Draws itself in a notebook.

    emulated, true_reduce_scatter: what the recorder has made of the run; see `Run`.
    """

    ops: tuple[tuple[Op, ...], ...]
    emulated: str = ""
    true_reduce_scatter: bool = False

    def __getitem__(self, rank: int) -> tuple[Op, ...]:
        return self.ops[rank]

    def __len__(self) -> int:
        return len(self.ops)

    def __repr__(self) -> str:
        counts = ", ".join(f"rank {rank}: {len(ops)}" for rank, ops in enumerate(self.ops))
        return f"Timeline(operations of {counts})"

    def picture(self, title: str = "") -> Any:
        """The same as a picture: ranks from top to bottom, time from left to right."""
        from utils.views.timeline import timeline_picture  # the views know matplotlib; running ranks does not need it

        return timeline_picture(self.ops, title=title, emulated=_made(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.picture()._repr_mimebundle_(include, exclude)


@dataclass(frozen=True)
class Run:
    """A run's results, each but `link_bytes` a tuple by rank.

    `values`: what the function returned. `printed`: what the rank wrote. `ring_bytes`: bytes the rank sends under the
    ring's rules for the operations that it issued (computed). `wire_bytes`: bytes its sockets sent and received by the
    kernel's counters (measured), or None where the system has no such counter or the data did not go through sockets.
    `link_bytes`, by node: what each node's link sent and received by the interface's counters (measured); None
    without a cluster of the kernel's links.
    `seconds`: from the common start to the last rank's result. `timeline`: every operation.
    `emulated`: "emulated link" or "emulated latency" if the recorder has held operations back, else "". Times of such
    a run are no measurements of a link: a title says so, and no column headed "measured" holds them.
    `true_reduce_scatter`: whether gloo's reduce-scatters were exchanged for such as send what the ring's rule says, as
    `launch` was asked; a title says so. False on NCCL, whose own are left alone.
    """

    world_size: int
    backend: str
    values: tuple[Any, ...]
    printed: tuple[str, ...]
    seconds: float
    ring_bytes: tuple[float, ...]
    wire_bytes: tuple[WireBytes, ...] | None
    timeline: Timeline
    link_bytes: tuple[LinkBytes, ...] | None = None
    emulated: str = ""
    true_reduce_scatter: bool = False

    def __repr__(self) -> str:
        many = "s" if self.world_size > 1 else ""
        return f"Run of {self.world_size} rank{many} ({self._over}): values {_short(list(self.values))}"

    @property
    def _over(self) -> str:
        return ", ".join(each for each in (self.backend, _made(self)) if each)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{rank}</td><td style='text-align:left'><code>{html.escape(_short(value))}</code></td>"
            f"<td>{self.ring_bytes[rank]:,.0f}</td>{self._wire_cells(rank)}</tr>"
            for rank, value in enumerate(self.values)
        )
        measured = "<th>sent, measured (B)</th><th>received, measured (B)</th>" if self.wire_bytes else ""
        note = "" if self.wire_bytes else " Bytes on the wire are not measurable here."
        return (
            f"<table><caption>{self.world_size} ranks, {self._over}, {self.seconds:.3f} s.{note}</caption>"
            f"<tr><th>rank</th><th>value</th><th>sent, ring's rule (B)</th>{measured}</tr>{rows}</table>"
            f"{self._link_table()}"
        )

    def _link_table(self) -> str:
        if self.link_bytes is None:
            return ""
        rows = "".join(
            f"<tr><td>{node}</td><td>{link.sent:,}</td><td>{link.received:,}</td></tr>"
            for node, link in enumerate(self.link_bytes)
        )
        return (
            "<table><caption>The nodes' links, headers included.</caption>"
            f"<tr><th>node</th><th>sent (B)</th><th>received (B)</th></tr>{rows}</table>"
        )

    def _wire_cells(self, rank: int) -> str:
        if self.wire_bytes is None:
            return ""
        wire = self.wire_bytes[rank]
        return f"<td>{wire.sent:,}</td><td>{wire.received:,}</td>"


def _made(run: Run | Timeline) -> str:
    """In words: what of a run is the recorder's doing; "" if nothing is."""
    return ", ".join(each for each in (run.emulated, "true reduce-scatter" if run.true_reduce_scatter else "") if each)


def _short(value: Any, limit: int = 160) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
