"""A training job as it is published: the model, the batch, how it is spread over GPUs, what is computed again."""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.architecture import Architecture, check_model
from utils.theory.arguments import check_choice, check_divisor, check_ranks, check_whole
from utils.theory.memory import STRATEGIES
from utils.theory.scale.software import DEFAULT_SOFTWARE, Software, named_software
from utils.theory.units import shown

#: What is computed again in the backward pass. "attention": the core alone (Korthikanti's selective). "half": every
#: other layer. "operations": every second matrix, and all else but the attention kernel (torchtitan's selective op: of
#: a Llama's seven matrices keys, output and up, 37% of an 8B layer's parameters).
AGAIN = ("none", "attention", "operations", "half", "full")
#: The share of its layers that runs again as a whole.
LAYERS_AGAIN = {"none": 0.0, "attention": 0.0, "operations": 0.0, "half": 0.5, "full": 1.0}
PRECISIONS = ("bf16", "fp8")
_SIZES = ("sequence", "micro_batch", "accumulation", "tensor", "pipeline", "context", "interleaved")
_MOST = 10**9


@dataclass(frozen=True)
class Job:
    """One training step of `model`.

    gpus: in all. sequence: tokens of a sequence. micro_batch: sequences that one data-parallel rank computes at once;
    accumulation: micro-batches of a step. strategy: of the data-parallel ranks, a name in `memory.STRATEGIES`;
    shard_size: hsdp's groups. tensor, pipeline, context: GPUs that share one replica's layers, stages and sequences;
    interleaved: pieces of a stage on each GPU (virtual stages). again: a name in `AGAIN`. precision: of the layers'
    matrices. Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """

    model: Architecture
    gpus: int
    sequence: int
    micro_batch: int = 1
    accumulation: int = 1
    strategy: str = "fsdp"
    shard_size: int | None = None
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    interleaved: int = 1
    again: str = "none"
    precision: str = "bf16"
    software: Software | str = DEFAULT_SOFTWARE

    def __post_init__(self) -> None:
        check_model(self.model)
        check_ranks("gpus", self.gpus, "a number of GPUs")
        for name in _SIZES:
            check_whole(name, getattr(self, name), "a size of the job", most=_MOST)
        for name in ("gpus", *_SIZES):
            if type(getattr(self, name)) is not int:  # numpy's overflow
                object.__setattr__(self, name, int(getattr(self, name)))
        check_choice("strategy", self.strategy, STRATEGIES)
        check_choice("again", self.again, AGAIN)
        check_choice("precision", self.precision, PRECISIONS)
        object.__setattr__(self, "software", named_software(self.software))
        if self.gpus % self.unit:
            raise ValueError(
                f"gpus is {self.gpus}, which tensor x pipeline x context = {self.unit} does not divide: give a multiple"
            )
        if self.pipeline > self.model.layers:
            raise ValueError(f"pipeline is {self.pipeline}, but the model has {self.model.layers} layers: give fewer")
        pieces = self.model.layers + 2  # embedding and head may be pieces of their own
        if self.interleaved > 1 and self.pipeline * self.interleaved > pieces:
            raise ValueError(
                f"interleaved is {self.interleaved}, but {self.pipeline} stages of {self.model.layers} layers have not "
                f"so many pieces each: give at most {max(1, pieces // self.pipeline)}"
            )
        check_divisor("tensor", self.tensor, self.model.heads, "the model's heads", "each GPU takes as many heads")
        check_divisor("context", self.context, self.sequence, "sequence", "each GPU takes an equal part of a sequence")
        check_positions(self.model, self.sequence)
        if self.strategy == "hsdp":
            check_divisor("shard_size", self.shard_size, self.ranks, "the data-parallel ranks", "groups are alike")
            object.__setattr__(self, "shard_size", int(self.shard_size))  # type: ignore[arg-type]
        elif self.shard_size is not None:
            raise ValueError(
                f"shard_size is {shown(self.shard_size)}, but {self.strategy} has no shard groups: leave it out"
            )

    @property
    def unit(self) -> int:
        """GPUs that hold one replica: tensor x pipeline x context."""
        return self.tensor * self.pipeline * self.context

    @property
    def ranks(self) -> int:
        """Data-parallel ranks: the outer dimension."""
        return self.gpus // self.unit

    @property
    def stage_layers(self) -> int:
        """Layers of the largest stage."""
        return -(-self.model.layers // self.pipeline)

    @property
    def shards(self) -> int:
        """Data-parallel ranks that share out what the strategy shards."""
        if self.strategy == "ddp":
            return 1
        return int(self.shard_size) if self.strategy == "hsdp" else self.ranks  # type: ignore[arg-type]

    @property
    def global_batch(self) -> int:
        """Sequences of a step."""
        return self.ranks * self.micro_batch * self.accumulation

    @property
    def tokens(self) -> int:
        """Tokens of a step, all GPUs together."""
        return self.global_batch * self.sequence

    @property
    def local_tokens(self) -> int:
        """Tokens that one GPU computes at once: of a micro-batch, its part of the sequence."""
        return self.micro_batch * self.sequence // self.context


def check_positions(model: Architecture, sequence: int) -> None:
    """Raise ValueError if the model has learned positions, and fewer of them than the sequence has tokens."""
    if model.learned_positions and sequence > model.learned_positions:
        raise ValueError(
            f"sequence is {sequence}, but the model has learned {model.learned_positions:,} positions: give no more"
        )
