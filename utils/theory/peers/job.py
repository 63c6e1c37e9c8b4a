"""One job, asked of every calculator: this suite's own and the peers'."""

from __future__ import annotations

from utils.theory.architecture import Architecture, check_model
from utils.theory.arguments import check_amount, check_one_of
from utils.theory.explain import Estimate, estimate
from utils.theory.memory import SHARDED, model_states, named_recipe, sharing_ranks
from utils.theory.peers.accelerate import accelerate
from utils.theory.peers.deepspeed import deepspeed_zero2, deepspeed_zero3
from utils.theory.peers.eleuther import eleuther
from utils.theory.peers.megatron import megatron
from utils.theory.recipes import Recipe
from utils.theory.units import GB, format_bytes, plain

#: By calculator, the ZeRO stages that it answers for. accelerate has no input for ranks: its answer is that of stage 0.
STAGES: dict[str, tuple[int, ...]] = {
    "this suite": (0, 1, 2, 3),
    "DeepSpeed": (2, 3),
    "EleutherAI": (0, 1, 2, 3),
    "EleutherAI, checkpointing": (0, 1, 2, 3),
    "Megatron-LM": (0, 1),
    "accelerate": (0,),
}
STRATEGY_OF_STAGE: tuple[str, ...] = ("ddp", "zero1", "zero2", "zero3")


def own_estimate(
    parameters: float,
    world_size: int,
    strategy: str,
    recipe: str | Recipe = "zero-paper",
    shard_size: int | None = None,
    activations: float = 0,
) -> Estimate:
    """This suite's: `theory.memory.model_states`, and activations if they are given in bytes. Errors as there.

    Gradients of 4 bytes and more are fp32, those below 16 bit; a recipe's `gradient_copy` is an fp32 copy beside them,
    shared out as the optimizer is.
    """
    states = model_states(parameters, world_size, strategy, shard_size, recipe)
    check_amount("activations", activations, "a number of bytes", "such as 10 * GB", least=0)
    used = named_recipe(recipe)
    parameters, activations = plain(parameters), plain(activations)
    sharing, own_gradients = sharing_ranks(world_size, strategy, shard_size), used.gradients - used.gradient_copy
    is_fp32 = own_gradients >= 4

    def part(name: str, each: float, like: str) -> tuple[str, float, float, int]:
        """A term of `each` bytes per parameter, shared out like that field of `ModelStates`."""
        ranks = sharing if like in SHARDED[strategy] else 1
        return name, each * parameters / ranks, each, ranks

    def copy(name: str) -> tuple[str, float, float, int]:
        return part(name, used.gradient_copy, "optimizer")

    parts = [
        part("weights", used.weights, "weights"),
        part("16-bit gradients", 0 if is_fp32 else own_gradients, "gradients"),
        part("fp32 gradients", own_gradients, "gradients") if is_fp32 else copy("fp32 gradients"),
        *([(*copy("miscellaneous"), "the optimizer's copy of the gradients")] if is_fp32 else []),
        part("master weights", used.master_weights, "master_weights"),
        part("optimizer", used.optimizer, "optimizer"),
    ]
    kind = recipe if isinstance(recipe, str) else used.title
    total = states.total + activations
    return estimate(
        f"this suite, {strategy}, {kind}",
        parameters,
        [*parts, ("activations", activations)],
        total,
        printed={"on each GPU": format_bytes(total, binary=False) if total < 10**15 else f"{total / GB:,.0f} GB"},
    )


def job_estimates(
    model: Architecture,
    world_size: int,
    stage: int,
    sequence: int = 2048,
    micro_batch: int = 1,
    recipe: str | Recipe = "zero-paper",
    activations: float = 0,
) -> dict[str, Estimate]:
    """What each calculator in `STAGES` that knows the stage says about one GPU, by its name there.

    world_size: N data-parallel ranks, no other parallelism. stage: 0 (plain data parallelism) to 3. recipe and
    activations (bytes) go into this suite's answer alone: with 0 it is model states only, beside peers that count
    activations too; `activations.activation_bytes` gives them. DeepSpeed is asked without offload, on nodes of up to 8
    GPUs. Megatron-LM is given the vocabulary as it is, not padded, and its rule without sequence parallelism.
    """
    check_model(model)
    check_one_of("stage", stage, (0, 1, 2, 3))
    own = own_estimate(model.parameters, world_size, STRATEGY_OF_STAGE[stage], recipe, activations=activations)
    per_node = max(each for each in range(1, 9) if world_size % each == 0)
    nodes = int(world_size) // per_node
    found = {"this suite": own}
    if stage == 2:
        found["DeepSpeed"] = deepspeed_zero2(model.parameters, per_node, nodes, cpu_offload=False)
    if stage == 3:
        largest = model.largest_module_parameters
        found["DeepSpeed"] = deepspeed_zero3(model.parameters, largest, per_node, nodes, cpu_offload=False)
    for name, recomputed in (("EleutherAI", False), ("EleutherAI, checkpointing", True)):
        found[name] = eleuther(
            model.hidden,
            model.layers,
            model.heads,
            model.vocabulary,
            sequence,
            micro_batch,
            world_size,
            stage,
            checkpoint_activations=recomputed,
            ffn_expansion=model.ffn / model.hidden,
            mlp_linears=3 if model.gated_mlp else 2,
            kv_ratio=model.kv_heads / model.heads,
        )
    if stage < 2:
        found["Megatron-LM"] = megatron(
            model.hidden,
            model.layers,
            model.heads,
            model.ffn,
            model.vocabulary,
            world_size,
            distributed_optimizer=stage == 1,
            query_groups=model.kv_heads,
            kv_channels=model.head_dim,
            swiglu=model.gated_mlp,
            rms_norm=model.norm == "rms",
            untied=not model.tied_embeddings,
            sequence=sequence,
            micro_batch=micro_batch,
        )
    if stage == 0:
        found["accelerate"] = accelerate(model.parameters, model.largest_module_parameters)
    return found
