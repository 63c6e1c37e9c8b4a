"""accelerate's estimate-memory.

Source: huggingface/accelerate, src/accelerate/commands/estimate.py (1.15.0).
"""

from __future__ import annotations

from utils.theory.arguments import check_choice
from utils.theory.explain import Estimate, estimate
from utils.theory.peers.arguments import GIB_CALLED_GB, amount
from utils.theory.peers.printed import by_1024
from utils.theory.units import GiB


def accelerate(
    parameters: int, largest_layer: int | None = None, dtype: str = "float32", buffer_bytes: int = 0
) -> Estimate:
    """accelerate's estimate-memory, "Training using Adam": 16 Psi in float32, 8 Psi in float16; else not answered.

    dtype: "float32", "float16", "int8" or "int4". buffer_bytes: of the model's buffers, which it counts like parameters
    (bert-base-cased: 8192, two buffers of 512 positions). It has no input for ranks or for activations.
    """
    parameters, smaller = amount("parameters", parameters), {"float32": 1, "float16": 2, "int8": 4, "int4": 8}
    check_choice("dtype", dtype, smaller)
    total = 4 * parameters + amount("buffer_bytes", buffer_bytes, least=0)
    each = total / parameters
    parts = [("weights", total, each), ("fp32 gradients", total, each), ("optimizer", 2 * total, 2 * each)]
    quirks = ["it has no input for ranks: no sharding", "no activations", GIB_CALLED_GB]
    if dtype == "float16":
        parts = [("optimizer", 2 * total, 2 * each, 1, "the largest of its four figures")]
        quirks.insert(0, "it prints the largest of model, gradients, optimizer and step (4, 6, 8, 8 B), not their sum")
    elif dtype != "float32":
        parts = []
    printed = {"Total Size": by_1024(total / smaller[dtype])}
    if largest_layer is not None:
        printed["Largest Layer"] = by_1024(4 * amount("largest_layer", largest_layer) / smaller[dtype])
    printed["Training using Adam"] = by_1024(sum(p[1] for p in parts)) if parts else "N/A"
    return estimate(f"accelerate, {dtype}", parameters, parts, printed=printed, unit=("GB", GiB), quirks=tuple(quirks))
