"""What is asked of the planner, checked: a model, GPUs on nodes, their memory and links, a sequence, a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from utils.theory.architecture import Architecture, check_model
from utils.theory.arguments import check_amount, check_choice, check_ranks, check_share, check_whole
from utils.theory.links import bytes_per_second
from utils.theory.models import PRESETS
from utils.theory.scale.efficiency import efficiency
from utils.theory.scale.hardware import Gpu, Machine, named_gpu
from utils.theory.scale.job import PRECISIONS, check_positions
from utils.theory.units import shown


def check_range(
    name: str, given: object, value: float, bounds: tuple[float, float], meaning: str, example: str
) -> None:
    """Raise ValueError outside of what occurs, so that GB for bytes, or bits for Gbit, are noticed."""
    least, most = bounds
    if not least <= float(value) <= most:
        bound = f"at least {least:g}" if float(value) < least else f"at most {most:g}"
        bound = bound.replace("e+0", "e").replace("e+", "e")
        raise ValueError(f"{name} is {shown(given)}; it is {meaning}: give {bound}, such as {example}")


@dataclass(frozen=True)
class Ask:
    """A question to the planner.

    name: of the model, as a person says it. gpus: in all; gpus_per_node: that share a node (all of them where there are
    fewer). gpu: the type. memory: bytes of one, its data sheet's if left out; reserve: the share of it that is kept
    free. network: Gbit/s of a node to the others, all its cards together. inside: GB/s of a GPU one way to the others
    on its node; its type's link if left out. sequence: tokens. global_batch: sequences of a step, all GPUs together.
    """

    name: str
    model: Architecture
    gpus: int
    gpus_per_node: int
    gpu: Gpu
    memory: float
    reserve: float
    network: float
    inside: float | None
    sequence: int
    global_batch: int
    precision: str

    @property
    def per_gpu(self) -> int:
        """Sequences of each GPU in a step, when all are data-parallel ranks."""
        return self.global_batch // self.gpus

    @property
    def budget(self) -> float:
        """Bytes of a GPU that may be used."""
        return (1 - self.reserve) * self.memory

    @property
    def nodes(self) -> int:
        return max(1, self.gpus // self.gpus_per_node)

    @cached_property
    def machine(self) -> Machine:
        inside = None if self.inside is None else self.inside * 1e9
        return Machine(self.gpu, self.gpus_per_node, bytes_per_second(self.network), inside)


def asked(
    model: str | Architecture,
    gpus: int,
    gpus_per_node: int | None = None,
    gpu: str | Gpu = "H100 80GB",
    memory: float | None = None,
    network: float = 3200,
    inside: float | None = None,
    sequence: int = 4096,
    global_batch: int | None = None,
    reserve: float = 0.1,
    precision: str = "bf16",
) -> Ask:
    """The question, with what was left out filled in. Raises ValueError, in one sentence, for what cannot be.

    global_batch: left out, one sequence for each GPU. gpus_per_node: left out, 8, or all GPUs where there are fewer.
    """
    name = model if isinstance(model, str) else "a model"
    if isinstance(model, str):
        model = PRESETS[model]
        name = next(known for known, each in PRESETS.items() if each is model) if name not in PRESETS else name
    check_model(model)
    check_ranks("gpus", gpus, "a number of GPUs")
    gpus = int(gpus)
    on_node = min(8, gpus) if gpus_per_node is None else gpus_per_node
    check_whole("gpus_per_node", on_node, "GPUs on each node", most=1024)
    on_node = int(on_node)
    if gpus > on_node and gpus % on_node:
        raise ValueError(f"gpus is {gpus}, which nodes of gpus_per_node = {on_node} do not make up: give a multiple")
    kind = named_gpu(gpu)
    size = kind.memory if memory is None else memory
    check_amount("memory", size, "a GPU's memory in bytes", "such as 80e9")
    check_range("memory", memory, size, (1e8, 1e13), "a GPU's memory in bytes", "80e9")
    check_share("reserve", reserve)
    check_amount("network", network, "Gbit/s of a node to the others", "such as 3200")
    check_range("network", network, network, (1e-3, 1e6), "Gbit/s of a node to the others", "3200")
    if inside is not None:
        check_amount("inside", inside, "GB/s of a GPU to the others on its node", "such as 450")
        check_range("inside", inside, inside, (1e-3, 1e5), "GB/s of a GPU to the others on its node", "450")
        inside = float(inside)
    check_whole("sequence", sequence, "a number of tokens", most=2**24)
    check_positions(model, sequence)
    batch = gpus if global_batch is None else global_batch
    check_whole("global_batch", batch, "sequences of a step, all GPUs together", most=10**7)
    batch = int(batch)
    if batch % gpus:
        less = batch // gpus * gpus
        near = f"{less} or {less + gpus}" if less else f"at least {gpus}"
        raise ValueError(
            f"global_batch is {batch}, which {gpus} data-parallel GPUs do not share evenly: give {near}, or plan units "
            "of several GPUs with hybrid_job"
        )
    check_choice("precision", precision, PRECISIONS)
    efficiency(kind, precision)
    return Ask(
        name, model, gpus, min(on_node, gpus), kind, float(size), float(reserve), float(network), inside,
        int(sequence), batch, precision,
    )  # fmt: skip
