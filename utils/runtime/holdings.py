"""What a rank holds, by kind: at one moment (`Holdings`) and over time (`History`). Measured by `utils.runtime.ledger`.

Plain numbers that can be sent from a rank to the notebook, and that draw themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from utils.theory.units import format_bytes

KINDS = ("weights", "gradients", "master weights", "moments", "activations", "other")


@dataclass(frozen=True)
class Holdings:
    """Bytes of storages that a rank holds at one moment, each storage once.

    weights: the model's parameters; a shard *and* its gathered copy where both exist.
    gradients: of the parameters and of the master weights, with the buckets in which they lie.
    master_weights: what the optimizer updates where that is not the model's own parameters.
    moments: the optimizer's state, such as Adam's two running means; its step counters are in `other`.
    activations: what autograd keeps for the backward pass, the batch itself included. Known only while a history is
        recorded; 0 otherwise.
    other: buffers of modules, step counters, and what was communicated and still exists, such as DDP's copy of the
        gradients in its buckets.
    on_gpu: the part of the total that lies on GPUs.
    allocated: what torch's allocator says it has given out on this rank's GPU (`torch.cuda.memory_allocated`); None
        without a GPU. It rounds each tensor up to a multiple of 512 B, and knows of tensors that no ledger was told of.
    """

    weights: int = 0
    gradients: int = 0
    master_weights: int = 0
    moments: int = 0
    activations: int = 0
    other: int = 0
    on_gpu: int = 0
    allocated: int | None = None

    def of(self, kind: str) -> int:
        """The bytes of one of `KINDS`."""
        return getattr(self, kind.replace(" ", "_"))

    @property
    def by_kind(self) -> dict[str, int]:
        """The bytes of every kind, in the order of `KINDS`."""
        return {kind: self.of(kind) for kind in KINDS}

    @property
    def total(self) -> int:
        return sum(self.by_kind.values())

    @property
    def model_states(self) -> int:
        """Weights, gradients, master weights and moments: what the ZeRO paper counts in bytes per parameter."""
        return self.weights + self.gradients + self.master_weights + self.moments

    @property
    def allocator(self) -> str:
        """In words: the ledger's bytes on the GPU beside the allocator's. `repr` is the same with and without a GPU."""
        if self.allocated is None:
            return "no GPU here, so no allocator to compare with"
        return f"on the GPU {self.on_gpu:,} B by the ledger; torch.cuda.memory_allocated says {self.allocated:,} B"

    def __repr__(self) -> str:
        width = len(f"{self.total:,}")
        return "\n".join(f"{kind:<14}  {size:>{width},} B" for kind, size in self._rows())

    def _repr_html_(self) -> str:
        most = max(self.total, 1)
        rows = "".join(
            f"<tr><td style='text-align:left'>{kind}</td><td>{size:,} B</td><td>{format_bytes(size)}</td>"
            f"<td style='text-align:left'><div style='width:{200 * size / most:.0f}px;height:0.8em;"
            "background:#8A8A8A'></div></td></tr>"
            for kind, size in self._rows()
        )
        return f"<table><tr><th>held</th><th></th><th></th><th></th></tr>{rows}</table>"

    def _rows(self) -> list[tuple[str, int]]:
        return [*self.by_kind.items(), ("total", self.total)]


@dataclass(frozen=True)
class Sample:
    """What was held at one event of a step: "forward" or "backward" of a module, "step" of an optimizer, or a note.

    where: the module's name within the model, "" for the whole model.
    done: whether the event was over or about to begin.
    """

    phase: str
    where: str
    done: bool
    holdings: Holdings

    @property
    def label(self) -> str:
        """ "forward of layers.0 begins", "backward begins", "step done"; of a note its own words."""
        if self.phase == "note":
            return self.where
        of = f" of {self.where}" if self.where else ""
        return f"{self.phase}{of} {'done' if self.done else 'begins'}"


@dataclass
class History:
    """What was held at each event, in order. Draws itself in a notebook."""

    samples: list[Sample] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Sample:
        return self.samples[index]

    @property
    def peak(self) -> Sample:
        """The first sample with the largest total. Raises ValueError if nothing was sampled."""
        if not self.samples:
            raise ValueError("the history has no samples: run a step of the ledger's model inside `with`")
        return max(self.samples, key=lambda sample: sample.holdings.total)

    def peak_of(self, kind: str) -> int:
        """The most bytes that one of `KINDS` held at any event; 0 if nothing was sampled."""
        return max((sample.holdings.of(kind) for sample in self.samples), default=0)

    def __repr__(self) -> str:
        if not self.samples:
            return "History(no samples)"
        return f"History of {len(self)} events, at most {self.peak.holdings.total:,} B, when {self.peak.label}"

    def picture(self, title: str = "") -> Any:
        """The same as a picture: bytes by kind, event after event."""
        from utils.views.holdings import history_picture  # the views know matplotlib; a rank does not need it

        return history_picture(self.samples, title=title)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.picture()._repr_mimebundle_(include, exclude)
