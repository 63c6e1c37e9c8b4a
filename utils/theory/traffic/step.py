"""The bytes that one training step moves, by strategy: per rank, and per node inside it and across its border.

A strategy is a list of collectives (`StepTraffic.collectives`); each follows the ring's rules of `collective.py`, so
every figure has its (N - 1) / N in full. S is a whole set of parameters or gradients in bytes, Psi of them.

Sources. Which collectives a strategy issues: Rajbhandari et al., "ZeRO", SC20, arXiv:1910.02054v3, section 7; Zhao et
al., "PyTorch FSDP", VLDB 2023, arXiv:2304.11277, sections 3.2 and 5.4. Once per micro-batch or once per step:
PyTorch's documentation of `DistributedDataParallel.no_sync` and of FSDP2's `set_requires_gradient_sync`; DeepSpeed
issues 373 and 2252. Bytes across a node's border: derived here, and checked against counters on links between nodes.

Which of it crosses a node's border follows from where the rings run: see `step_traffic.py`.

What the FSDP paper (section 3.2.2) calls traffic across hosts *per GPU*, 2 M (W - 1) / W for DDP, 3 M (W - 1) / W for
full sharding and 2 M (W - 1) / (G W) for the hybrid with G GPUs a host, takes every message of a flat ring as crossing.
A node then sends G times the first two across; the ring sends them once for the whole node. For the hybrid the ring
among R = W / G replicas gives 2 M / G · (R - 1) / R = 2 M (W - G) / (G W): less than the paper's by (W - G) / (W - 1),
about a half for two nodes. So per node the step from FSDP to HSDP is from 3 S to 2 S; what falls by 1.5 G is the figure
of the one rank at the border.
"""

from __future__ import annotations

from utils.theory.arguments import check_amount, check_choice, check_divisor, check_whole, check_yes_or_no
from utils.theory.memory import GATHERING, sharing_ranks
from utils.theory.traffic.collective import RING_PASSES
from utils.theory.traffic.step_traffic import Entry, StepTraffic, leaving_replica_rings, leaving_shard_rings, moved_as
from utils.theory.units import plain, shown

_REDUCED_ONCE = ("ddp", "zero1")  # these keep whole gradients, so that they can wait for the last micro-batch
RULES = ("ring", "gloo")


def step_bytes(
    parameters: float,
    strategy: str,
    world_size: int,
    shard_size: int | None = None,
    nodes: int = 1,
    bytes_per_element: float = 2,
    micro_batches: int = 1,
    *,
    gradient_bytes_per_element: float | None = None,
    reshard_after_forward: bool = True,
    root_parameters: float = 0,
    reduce_every_micro_batch: bool | None = None,
    all_reduce_every_micro_batch: bool | None = None,
    rules: str = "ring",
) -> StepTraffic:
    """Bytes that one optimizer step of Psi parameters on N ranks moves.

    In units of (N - 1) / N times Psi's bytes, with k micro-batches: ddp and zero1 2; zero2 k + 1; zero3 and fsdp 3 k.
    hsdp with shard groups of G: 3 k times (G - 1) / G inside the group, and 2 k (R - 1) / R · Psi / G among R = N / G.

    Args:
        parameters: Psi, above 0.
        strategy: one of `STRATEGIES`.
        world_size: N.
        shard_size: G, for hsdp alone: a divisor of N. Shard groups are neighbours in rank order.
        nodes: a divisor of N; N / nodes neighbours share a node.
        bytes_per_element: of parameters as they are gathered.
        micro_batches: k, the forward and backward passes before one optimizer step.
        gradient_bytes_per_element: of gradients as they are reduced; None: as the parameters.
        reshard_after_forward: False keeps what forward gathered until backward has used it: one gather per micro-batch
            (zero3, fsdp, hsdp).
        root_parameters: of the root unit, which FSDP keeps gathered from forward to backward: 3 Psi - Psi_root
            (zero3, fsdp, hsdp).
        reduce_every_micro_batch: whether gradients are reduced after each backward, or once. None: as is usual, ddp
            (under `no_sync`) and zero1 once, the others each time. Once, zero2 and fsdp keep whole gradients meanwhile:
            2, and 2 k + 1.
        all_reduce_every_micro_batch: the same for hsdp's all-reduce among replicas alone, FSDP2's
            `set_requires_all_reduce`; None: as the reduce-scatter.
        rules: "ring", or "gloo", whose reduce-scatter is an all-reduce: zero1 3, zero2 2 k + 1, fsdp 4 k. An
            implementation of ZeRO that all-reduces gradients moves the same.

    Shares are exact; a framework that pads its shards moves a little more.
    Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """
    ranks = sharing_ranks(world_size, strategy, shard_size)
    _check_options(strategy, reshard_after_forward, root_parameters, all_reduce_every_micro_batch)
    check_amount("parameters", parameters, "a number of parameters", "such as 7.5e9")
    check_whole("micro_batches", micro_batches, "a number of passes before a step")
    check_amount("bytes_per_element", bytes_per_element, "the size of a gathered parameter", "such as 2")
    if gradient_bytes_per_element is None:
        gradient_bytes_per_element = bytes_per_element
    else:
        check_amount("gradient_bytes_per_element", gradient_bytes_per_element, "the size of a gradient", "such as 4")
    check_divisor("nodes", nodes, world_size, "world_size", "nodes hold equally many ranks")
    check_choice("rules", rules, RULES)
    if reduce_every_micro_batch is None:
        reduce_every_micro_batch = strategy not in _REDUCED_ONCE
    else:
        check_yes_or_no("reduce_every_micro_batch", reduce_every_micro_batch)
    group = 1 if strategy == "ddp" else ranks
    psi, n, k, nodes = plain(parameters), int(world_size), int(micro_batches), int(nodes)
    gradients, weights = psi * plain(gradient_bytes_per_element), psi * plain(bytes_per_element)
    reductions = k if reduce_every_micro_batch else 1
    if all_reduce_every_micro_batch and not reduce_every_micro_batch:
        raise ValueError(
            "all_reduce_every_micro_batch is True, but gradients are reduced once: replicas have nothing to exchange "
            "before; leave one of the two out"
        )
    replicated = 1 if all_reduce_every_micro_batch is False else reductions

    plan: tuple[Entry, ...]
    if strategy == "ddp":
        plan = (("all_reduce", "gradients", gradients, "replica", reductions),)
    elif strategy in GATHERING:
        if not root_parameters <= psi:
            raise ValueError(
                f"root_parameters is {shown(root_parameters)}; the root is part of the model's {shown(parameters)} "
                "parameters: give at most as many"
            )
        plan = (("all_gather", "parameters, forward", weights, "shard", k),)
        again = weights - plain(root_parameters) * plain(bytes_per_element) if reshard_after_forward else 0
        if again:
            plan += (("all_gather", "parameters, backward", again, "shard", k),)
        plan += (("reduce_scatter", "gradients", gradients, "shard", reductions),)
        if strategy == "hsdp":
            plan += (("all_reduce", "gradients, among replicas", gradients / group, "replica", replicated),)
    else:
        plan = (
            ("reduce_scatter", "gradients", gradients, "shard", reductions),
            ("all_gather", "parameters, updated", weights, "shard", 1),
        )
    return _sent(strategy, parameters, n, group, nodes, rules, plan)


def forward_bytes(
    parameters: float,
    strategy: str,
    world_size: int,
    shard_size: int | None = None,
    nodes: int = 1,
    bytes_per_element: float = 2,
) -> StepTraffic:
    """Bytes that a forward pass without gradients moves, as in an evaluation: the gathers of forward, or nothing.

    fsdp gathers among all ranks, so across nodes; hsdp among those of a shard group alone, so within a node that holds
    whole groups. Arguments and errors as for `step_bytes`.
    """
    whole = step_bytes(parameters, strategy, world_size, shard_size, nodes, bytes_per_element)
    plan = whole.plan[:1] if strategy in GATHERING else ()
    return _sent(strategy, whole.parameters, whole.world_size, whole.shard_size, whole.nodes, "ring", plan)


def _sent(
    strategy: str, parameters: float, n: int, group: int, nodes: int, rules: str, plan: tuple[Entry, ...]
) -> StepTraffic:
    """The sums over the plan: the ring's shares, spelt out once more because a search calls this 100,000 times."""
    on_node = n // nodes
    in_shards = in_replicas = 0.0
    for kind, _, size, where, times in plan:
        if where == "replica":
            in_replicas += RING_PASSES[kind] * times * size
        else:
            in_shards += RING_PASSES[moved_as(kind, rules)] * times * size
    shard_sent = (group - 1) * in_shards / group
    replica_sent = (n // group - 1) * in_replicas / (n // group)
    leaving_shards = leaving_most(on_node, group, nodes)
    leaving_replicas = leaving_replica_rings(on_node, group, nodes)
    inside = (on_node - leaving_shards) * shard_sent + (on_node - leaving_replicas) * replica_sent
    across = leaving_shards * shard_sent + leaving_replicas * replica_sent
    return StepTraffic(strategy, parameters, n, group, nodes, rules, shard_sent + replica_sent, inside, across, plan)


def leaving_most(on_node: int, group: int, nodes: int) -> int:
    """Sends of shard rings that leave the node where most do; arguments as for `leaving_shard_rings`."""
    if nodes == 1 or on_node % group == 0:
        return 0
    if group % on_node == 0:
        return 1
    if group > on_node:
        return 2  # groups lie askew to the nodes, and a border between two of them falls inside some node
    # The pattern comes again after `group` nodes at the latest.
    return max(leaving_shard_rings(node, on_node, group) for node in range(min(nodes, group)))


def _check_options(
    strategy: str, reshard_after_forward: bool, root_parameters: float, all_reduced: bool | None
) -> None:
    """The options that only some strategies have."""
    if all_reduced is not None:
        if strategy != "hsdp":
            raise ValueError(
                f"all_reduce_every_micro_batch is {shown(all_reduced)}, but {strategy} has no replicas of shard "
                "groups: leave it out, or choose 'hsdp'"
            )
        check_yes_or_no("all_reduce_every_micro_batch", all_reduced)
    check_yes_or_no("reshard_after_forward", reshard_after_forward)
    check_amount("root_parameters", root_parameters, "a number of parameters", "such as 262e6", least=0)
    if strategy not in GATHERING and (root_parameters or not reshard_after_forward):
        given = f"root_parameters is {shown(root_parameters)}" if root_parameters else "reshard_after_forward is False"
        raise ValueError(f"{given}, but {strategy} gathers nothing to compute: leave it out, or choose 'fsdp'")
