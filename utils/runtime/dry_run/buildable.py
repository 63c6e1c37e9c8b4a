"""Which model is meant, whether it can be built, and how its layers are arranged."""

from __future__ import annotations

from typing import Any

from utils.theory.architecture import Architecture, check_model
from utils.theory.models import PRESETS

_BUILT_NORMS = (0, 2, 4)


def named_model(model: Any) -> tuple[str, Architecture]:
    """A name for titles, and the architecture. Raises ValueError, in one sentence, for what cannot be built."""
    if isinstance(model, str):
        name = PRESETS.named(model)
        return name, PRESETS[name]
    check_model(model)
    if model.norms_per_layer not in _BUILT_NORMS:
        raise ValueError(
            f"norms_per_layer is {model.norms_per_layer}, and where they stand in a layer is not known here: "
            "give 0, 2 or 4, as all presets have"
        )
    return f"a model of {model.parameters:,} parameters", model


def arrangement(model: Architecture) -> str:
    """Where the norms of a layer stand: "before", "after", "around", "on the sum", "side by side", or "none" there."""
    if not model.norms_per_layer:
        return "none"
    if model.norms_per_layer == 4:
        return "around"
    if model.layout == "gpt-neox":
        return "side by side"
    if model.qk_norms == "full width":
        return "after"
    return "before" if model.final_norm else "on the sum"
