"""DeepSpeed's two estimators of model states.

Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py and stage3.py (0.19.8).
"""

from __future__ import annotations

from utils.theory.explain import Estimate, estimate
from utils.theory.peers.arguments import GIB_CALLED_GB, amount, flags, group, state
from utils.theory.peers.printed import gib
from utils.theory.units import GiB

_FP32_STATES = (("fp32 gradients", 4), ("master weights", 4), ("optimizer", 8))


def deepspeed_zero2(
    parameters: float,
    gpus_per_node: int = 1,
    nodes: int = 1,
    cpu_offload: bool = True,
    buffer_factor: float = 1.5,
    before_june_2024: bool = False,
) -> Estimate:
    """DeepSpeed's `estimate_zero2_model_states_mem_needs`: GPU 2 Psi + 18 Psi / N; with the optimizer on the CPU 2 Psi.

    before_june_2024: the rule until pull request 5099, 4 Psi + 16 Psi / N, which its documentation still shows.
    """
    flags(cpu_offload=cpu_offload, before_june_2024=before_june_2024)
    parameters = amount("parameters", parameters)
    gpus_per_node, nodes = group("gpus_per_node", gpus_per_node), group("nodes", nodes)
    buffer_factor, n = amount("buffer_factor", buffer_factor), gpus_per_node * nodes
    quirks = [GIB_CALLED_GB, "at one GPU it counts 20 bytes per parameter, where its ZeRO-3 estimator counts 18"]
    if cpu_offload:
        parts, total = [state("weights", 2, parameters)], int(2 * parameters)
        cpu = int(parameters * max(4 * n, 16) * buffer_factor)
        quirks.append("the main memory of one node grows with the GPUs of all nodes")
    else:
        copies, shares = (4, 16) if before_june_2024 else (2, 18)
        parts = [
            state("weights", 2, parameters),
            state("16-bit gradients", 2, parameters, 1 if before_june_2024 else n),
            *(state(name, each, parameters, n) for name, each in _FP32_STATES),
        ]
        total = int(copies * parameters + int(shares * parameters / n))
        cpu = int(parameters * 4 * gpus_per_node * buffer_factor)
        quirks.append("the gradients are there twice, in 16 bit and in fp32")
    return _deepspeed(f"DeepSpeed ZeRO-2{_offloaded(cpu_offload, False)}", parameters, parts, total, cpu, quirks)


def deepspeed_zero3(
    parameters: float,
    largest_layer: float,
    gpus_per_node: int = 1,
    nodes: int = 1,
    cpu_offload: bool = True,
    cpu_offload_params: bool = True,
    zero_init: bool = True,
    buffer_factor: float = 1.5,
) -> Estimate:
    """DeepSpeed's `estimate_zero3_model_states_mem_needs`: GPU 4 x the largest layer + 18 Psi / N.

    largest_layer: parameters of the largest single module, not counting its submodules: most often the embedding.
    With the optimizer on the CPU 2 Psi / N in place of 18 Psi / N, with the parameters there too 0.
    `cpu_offload_params` counts only together with `cpu_offload`.
    """
    flags(cpu_offload=cpu_offload, cpu_offload_params=cpu_offload_params, zero_init=zero_init)
    parameters, largest_layer = amount("parameters", parameters), amount("largest_layer", largest_layer)
    gpus_per_node, nodes = group("gpus_per_node", gpus_per_node), group("nodes", nodes)
    buffer_factor, n = amount("buffer_factor", buffer_factor), gpus_per_node * nodes
    parts = [("largest layer", 4 * largest_layer, None, 1, "the largest module, gathered with its gradient")]
    total, node_share = 4 * largest_layer, 1 / nodes
    if not cpu_offload:
        parts += [state("weights", 2, parameters, n), *(state(name, b, parameters, n) for name, b in _FP32_STATES)]
        total += int(18 * parameters / n)
        cpu = (largest_layer if zero_init else parameters) * 4 * gpus_per_node * buffer_factor
    else:
        if not cpu_offload_params:
            parts.append(state("weights", 2, parameters, n))
            total += int(2 * parameters / n)
        kept = 18 if cpu_offload_params else 16
        if zero_init:
            cpu = parameters * kept * node_share * buffer_factor
        else:
            cpu = parameters * max(4 * gpus_per_node, kept * node_share) * buffer_factor
    quirks = [
        GIB_CALLED_GB,
        "at one GPU it counts 18 bytes per parameter, where its ZeRO-2 estimator counts 20",
        "the largest layer is the largest single module, not the largest wrapped unit that is gathered",
    ]
    who = f"DeepSpeed ZeRO-3{_offloaded(cpu_offload, cpu_offload_params)}"
    return _deepspeed(who, parameters, parts, int(total), int(cpu), quirks)


def _deepspeed(who: str, parameters: float, parts: list, total: int, cpu: int, quirks: list[str]) -> Estimate:
    printed = {"per CPU": f"{gib(cpu)}GB", "per GPU": f"{gib(total)}GB"}
    return estimate(who, parameters, parts, total, printed=printed, unit=("GB", GiB), cpu=cpu, quirks=tuple(quirks))


def _offloaded(optimizer: bool, params: bool) -> str:
    if not optimizer:
        return ""
    return ", optimizer and weights on the CPU" if params else ", optimizer on the CPU"
