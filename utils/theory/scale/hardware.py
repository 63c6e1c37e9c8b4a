"""GPUs and the machines that they stand in: rates as the makers publish them, and what is left of them in use.

Two shares turn a published rate into a sustained one, for every GPU and every network alike:

- `MEMORY_SHARE`: of HBM's rate. BabelStream and NVIDIA's own copies reach 85 to 92% on A100 and H100.
- `LINK_SHARE`: of a link's rate one way. NVLink 4 leaves 370 of 450 GB/s ("protocol overhead about 20%", NVIDIA/nccl
  issue 1442, nccl-tests issue 212); EFA's 50 GB/s of a node carried 42 GB/s in an all-reduce of 2 x 8 A100
  (`theory.sweeps`), which is 84%.
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_choice, check_whole
from utils.theory.flops import PEAK_FLOPS
from utils.theory.links import bytes_per_second
from utils.theory.units import GB

MEMORY_SHARE = 0.85
LINK_SHARE = 0.82


@dataclass(frozen=True)
class Gpu:
    """One type of GPU, by its data sheet.

    peak: dense 16-bit operations per second; peak_fp8: the same in 8 bit, 0 where there is none. memory: bytes.
    memory_rate: bytes per second of its HBM. link: bytes per second one way to the others on its node.
    like: the type whose efficiency is taken, where no published run of its own calibrates one.
    """

    name: str
    peak: float
    peak_fp8: float
    memory: float
    memory_rate: float
    link: float
    source: str
    like: str | None = None

    def __post_init__(self) -> None:
        for field in ("peak", "memory", "memory_rate", "link"):
            check_amount(f"a GPU's {field}", getattr(self, field), "its data sheet's figure", "such as 312e12")
        check_amount("a GPU's peak_fp8", self.peak_fp8, "its data sheet's figure", "such as 1979e12", least=0)


def _sheet(
    name: str, peak: str, memory: float, rate: float, link: float, fp8: bool = False, like: str | None = None,
    source: str | None = None,
) -> Gpu:  # fmt: skip
    """peak: a name in `PEAK_FLOPS`. memory, rate and link in GB and GB/s."""
    top = PEAK_FLOPS[peak]
    return Gpu(name, top, 2 * top if fp8 else 0, memory * GB, rate * GB, link * GB, source or f"NVIDIA, {name}", like)


#: By name. A GB200's B200 has more power and a larger NVLink domain; a GB300 has another chip, with 288 GB.
GPUS: dict[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        _sheet("V100 32GB", "V100", 32, 900, 150, like="A100 80GB"),
        _sheet("A100 40GB", "A100", 40, 1555, 300),
        _sheet("A100 80GB", "A100", 80, 2039, 300),
        _sheet("H100 80GB", "H100", 80, 3350, 450, fp8=True),
        _sheet(
            "H100 96GB", "H100", 96, 2400, 450, fp8=True,
            source="pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: 96 GB of HBM2e, 2.4 TB/s, 500 W",
        ),
        _sheet("H200 141GB", "H200", 141, 4800, 450, fp8=True, like="H100 80GB"),
        _sheet("B200 180GB", "B200", 180, 8000, 900, fp8=True, like="H100 80GB"),
    )
}  # fmt: skip


def named_gpu(gpu: str | Gpu) -> Gpu:
    """The GPU itself, or that of `GPUS` with that name, or the only one whose name begins so ("H200")."""
    if isinstance(gpu, Gpu):
        return gpu
    if isinstance(gpu, str) and gpu not in GPUS:
        begins = [name for name in GPUS if name.lower().startswith(gpu.strip().lower() or "?")]
        if len(begins) == 1:
            return GPUS[begins[0]]
    check_choice("gpu", gpu, GPUS)
    return GPUS[gpu]


@dataclass(frozen=True)
class Machine:
    """Equal nodes of GPUs, and the network between them.

    gpus_per_node: that NVLink joins. network: bytes per second one way that a *node* has to the others, all its cards
    together, as published. inside: the same of a GPU to the others on its node; its type's link if left out.
    """

    gpu: Gpu
    gpus_per_node: int = 8
    network: float = 400 * GB
    inside: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpu", named_gpu(self.gpu))
        check_whole("gpus_per_node", self.gpus_per_node, "how many GPUs a node has", most=1024)
        check_amount("network", self.network, "bytes per second of a node to the others", "such as 400 * GB")
        if self.inside is None:
            object.__setattr__(self, "inside", self.gpu.link)
        check_amount("inside", self.inside, "bytes per second of a GPU inside its node", "such as 450 * GB")
        for name, kind in (("gpus_per_node", int), ("network", float), ("inside", float)):
            object.__setattr__(self, name, kind(getattr(self, name)))  # numpy's overflow

    @property
    def memory_rate(self) -> float:
        """Bytes per second that HBM sustains."""
        return MEMORY_SHARE * self.gpu.memory_rate

    @property
    def inside_rate(self) -> float:
        """Bytes per second one way that a GPU sustains to the others on its node."""
        return LINK_SHARE * float(self.inside or 0)

    @property
    def network_rate(self) -> float:
        """Bytes per second one way that a node sustains to the other nodes."""
        return LINK_SHARE * self.network


def machine(gpu: str | Gpu, gigabits: float = 3200, gpus_per_node: int = 8) -> Machine:
    """A machine by its GPU's name and the Gbit/s of a node's network: `machine("H100 80GB", 3200)`."""
    return Machine(named_gpu(gpu), gpus_per_node, bytes_per_second(gigabits))
