"""What a shard group of G ranks costs and buys on nodes: memory, bytes inside and across, step time, and what binds.

G = 1 is plain data parallelism, G = all ranks full sharding, what lies between is HSDP. In groups of G each rank holds
1/G of all states. As long as a group lies within a node, its gathers do too, and 2 (R - 1)/R of the gradients leave
each of R nodes, whatever G is; beyond a node, gathers cross as well. So of the groups within a node the largest costs
the least memory and nothing on the slow link.

Sources: Zhao et al., "PyTorch FSDP", VLDB 2023, arXiv:2304.11277, section 3.2.2 (hybrid sharding; `traffic.step` says
where its formula counts otherwise); Zhang et al., "MiCS: Near-linear Scaling for Training Gigantic Model on Public
Cloud", VLDB 2022, arXiv:2205.00119, section 3 (the smallest group that holds the model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.theory.architecture import Architecture, check_model
from utils.theory.arguments import check_all, check_amount, check_ranks, check_whole
from utils.theory.breakdown import training_memory
from utils.theory.flops import flops_per_token
from utils.theory.node_tasks import ACROSS, INSIDE
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.traffic import StepTraffic, step_bytes

COMPUTE, MEMORY = "compute", "memory"
#: What can bind -> in words.
BINDS = {
    MEMORY: "the memory of a GPU: it does not fit",
    COMPUTE: "compute",
    INSIDE: "the links inside a node",
    ACROSS: "the link between nodes",
}


@dataclass(frozen=True)
class Hybrid:
    """One size of shard group.

    memory: bytes of a GPU at the peak of a step. traffic: bytes of a step, a node's inside and across. seconds: of the
    step; exposed: of them only waiting for communication. busy: seconds of compute, and seconds that each kind of link
    needs for all that goes over it, by the names in `BINDS`. fits: whether the memory does.
    """

    shard_size: int
    memory: float
    traffic: StepTraffic
    seconds: float
    exposed: float
    busy: dict[str, float]
    fits: bool

    @property
    def binds(self) -> str:
        """The name in `BINDS` of what has most to do; "memory" if it does not fit."""
        return max(self.busy, key=lambda name: self.busy[name]) if self.fits else MEMORY


def model_layers(model: Architecture, tokens: int, sequence: int, flops_per_second: float) -> list[Layer]:
    """The model as equal units, one for each layer, with what no layer has spread over them; 16 bit on the wire.

    tokens: of one GPU in a step. flops_per_second: what the GPU really does of them. Backward takes twice forward.
    """
    check_model(model)
    check_whole("tokens", tokens, "how many tokens a GPU has in a step")
    check_amount("flops_per_second", flops_per_second, "operations per second", "such as 0.4 * 989e12")
    operations = int(tokens) * flops_per_token(model.parameters, model.layers, model.hidden, sequence)
    forward = operations / 3 / model.layers / float(flops_per_second)
    return [Layer(forward, gradient_bytes=2 * model.parameters / model.layers)] * model.layers


def hybrid(
    model: Architecture,
    nodes: int,
    gpus_per_node: int,
    shard_size: int,
    inside: Link,
    across: Link,
    *,
    memory: float,
    sequence: int = 4096,
    micro_batch: int = 1,
    flops_per_second: float = 0.4 * 989.4e12,
    recomputation: str = "full",
) -> Hybrid:
    """A step of the model in shard groups of `shard_size` neighbours, on nodes of so many GPUs.

    inside: the link that a GPU has to the others on its node. across: the one that a node has to the others, all its
    cards together. memory: bytes of one GPU. micro_batch: sequences of each GPU in a step.
    flops_per_second: what a GPU does, 0.4 of an H100's peak if left out. Memory and bytes are of fp32 shards, gathered
    and reduced in 16 bit. Raises ValueError for values out of range, groups that do not divide the GPUs.
    """
    check_ranks("nodes", nodes, "a number of nodes")
    check_ranks("gpus_per_node", gpus_per_node, "GPUs on each node, the same on all")
    check_amount("memory", memory, "a GPU's memory in bytes", "such as 80 * GB")
    check_whole("micro_batch", micro_batch, "sequences of a GPU in a step")
    gpus = int(nodes) * int(gpus_per_node)
    traffic = step_bytes(model.parameters, "hsdp", gpus, shard_size, nodes)
    layers = model_layers(model, int(micro_batch) * int(sequence), sequence, flops_per_second)
    step = simulate_step(layers, gpus, inside, "hsdp", shard_size=shard_size, across=across, nodes=nodes)
    held = training_memory(
        model, gpus, "hsdp", sequence, micro_batch, recomputation=recomputation, shard_size=shard_size, recipe="fsdp2"
    ).total
    busy = {COMPUTE: step.compute, **step.by_link}
    return Hybrid(int(shard_size), held, traffic, step.seconds, step.exposed, busy, held <= memory)


def shard_sizes(nodes: int, gpus_per_node: int) -> list[int]:
    """The groups worth a look: divisors of a node, and whole nodes that divide all of them; from 1 to all GPUs."""
    check_ranks("nodes", nodes, "a number of nodes")
    check_ranks("gpus_per_node", gpus_per_node, "GPUs on each node")
    within = [size for size in range(1, int(gpus_per_node) + 1) if int(gpus_per_node) % size == 0]
    return within + [int(gpus_per_node) * n for n in range(2, int(nodes) + 1) if int(nodes) % n == 0]


def best(choices: Sequence[Hybrid]) -> Hybrid | None:
    """The fastest that fits, of equally fast ones (within 1%) the one that holds least; None if none fits."""
    fitting = [choice for choice in check_all("choices", choices, Hybrid, "as `hybrid` gives them") if choice.fits]
    if not fitting:
        return None
    least = min(choice.seconds for choice in fitting)
    return min((c for c in fitting if c.seconds <= 1.01 * least), key=lambda choice: choice.memory)
