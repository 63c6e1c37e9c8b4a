"""How many bytes a parameter costs, by convention: precision of each state, and the optimizer.

Calculators and papers disagree mostly because they count under different ones of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_one_of
from utils.theory.units import plain, shown

_AMOUNTS = ("weights", "gradients", "master_weights", "optimizer", "communicated_gradients", "gradient_copy", "foreach")
_ZERO = "Rajbhandari et al., ZeRO, arXiv:1910.02054v3, section 3.1"
_SGD = "PyTorch documentation of torch.optim.SGD"
# The square roots of Adam's second moments, fp32. SGD works in place; bitsandbytes' 8-bit Adam is one fused kernel.
_ADAM_FOREACH = 4


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter of each state, and where the convention comes from.

    optimizer: the moments alone. communicated_gradients: the precision in which DDP reduces gradients.
    gradient_copy: the part of `gradients` that is a copy which the optimizer makes of its own share, so that it is
    shared out as the optimizer is; 0 in most. computed: the precision in which a weight is computed with and an
    activation kept, 2 or 4; left out, 4 where weights take 4 bytes or more. foreach: what PyTorch's optimizer allocates
    for the time of its step when it works on all tensors at once, as it does by default on GPUs; see
    `breakdown.training_memory`.

    Raises ValueError, in one sentence, for bytes that are not finite numbers of at least 0, and for a title or source
    that is no text.
    """

    title: str
    weights: float
    gradients: float
    master_weights: float
    optimizer: float
    communicated_gradients: float
    source: str
    gradient_copy: float = 0
    computed: int | None = None
    foreach: float = 0

    def __post_init__(self) -> None:
        for field in ("title", "source"):
            if not isinstance(getattr(self, field), str):
                raise ValueError(f"a recipe's {field} is {shown(getattr(self, field))}; give a text")
        for field in _AMOUNTS:
            value = getattr(self, field)
            check_amount(f"a recipe's {field}", value, "bytes per parameter", "such as 2 for 16 bits", least=0)
            object.__setattr__(self, field, plain(value))
        if self.computed is None:
            object.__setattr__(self, "computed", 4 if self.weights >= 4 else 2)
        check_one_of("a recipe's computed", self.computed, (2, 4))
        if self.gradient_copy > self.gradients:
            raise ValueError(
                f"a recipe's gradient_copy is {self.gradient_copy!r}; it is a part of its gradients: give at most "
                f"{self.gradients!r}"
            )

    @property
    def total(self) -> float:
        """Bytes per parameter on a GPU that holds everything."""
        return self.weights + self.gradients + self.master_weights + self.optimizer


PRECISION_RECIPES: dict[str, Recipe] = {
    "zero-paper": Recipe(
        "Adam, 16-bit weights and gradients, fp32 master weights", 2, 2, 4, 8, 2, _ZERO, foreach=_ADAM_FOREACH
    ),
    "fp32-gradients": Recipe(
        "Adam, 16-bit weights, gradients summed in fp32, fp32 master weights",
        2, 4, 4, 8, 4,
        "Megatron-LM, docs/user-guide/features/dist_optimizer.md: bf16 parameters, fp32 gradients",
        foreach=_ADAM_FOREACH,
    ),
    "deepspeed": Recipe(
        "Adam, 16-bit weights, gradients in 16 bit and in fp32, fp32 master weights",
        2, 6, 4, 8, 2,
        "DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py: estimate_zero2_model_states_mem_needs, since June 2024: "
        "2 + 18 / N under zero2. With zero1 4 + 16 / N, as Megatron-LM's docs/user-guide/features/dist_optimizer.md "
        "gives for fp16 gradients, and DeepSpeed's estimate before June 2024. With zero3 20 / N, where DeepSpeed's own "
        "estimate for ZeRO-3 (stage3.py) says 18 / N: it leaves the 16-bit gradients out",
        gradient_copy=4,
        foreach=_ADAM_FOREACH,
    ),
    "fp32": Recipe(
        "Adam, everything in fp32",
        4, 4, 0, 8, 4,
        "huggingface/accelerate, src/accelerate/commands/estimate.py: float32",
        foreach=_ADAM_FOREACH,
    ),
    "fsdp2": Recipe(
        "Adam, fp32 weights that are cast to 16 bit when they are gathered",
        4, 4, 0, 8, 4,
        "PyTorch documentation of torch.distributed.fsdp.MixedPrecisionPolicy: the sharded parameters keep their "
        "precision; what is gathered in 16 bit comes for a while, at 2 bytes per parameter",
        computed=2,
        foreach=_ADAM_FOREACH,
    ),
    "sgd": Recipe("SGD without momentum, everything in fp32", 4, 4, 0, 0, 4, f"{_SGD}: no state"),
    "sgd-momentum": Recipe("SGD with momentum, everything in fp32", 4, 4, 0, 4, 4, f"{_SGD}: one momentum_buffer"),
    "adam-8bit": Recipe(
        "Adam with 8-bit moments, 16-bit weights and gradients, fp32 master weights",
        2, 2, 4, 2, 2,
        f"Dettmers et al., 8-bit Optimizers via Block-wise Quantization, arXiv:2110.02861: two moments of one byte; "
        f"their scales, 8 bytes for each block of 2048 parameters, are left out. The other states: {_ZERO}",
    ),
}  # fmt: skip
