"""In a rank: reads a model's weights where they are used, because a stage of ZeRO may hold them nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from utils.runtime.held import unseen

Weights = dict[str, torch.Tensor]  # by parameter name; a tied parameter under each of its names


class Reader:
    """Notes each parameter's value when the module that owns it computes."""

    def __init__(self, model: nn.Module) -> None:
        self.weights: Weights | None = None
        self.passing: Callable[[], None] = lambda: None  # called when a module with parameters computes
        for name, module in model.named_modules():
            own = [key for key, _ in module.named_parameters(name, recurse=False, remove_duplicate=False)]
            if own:
                module.forward = self._noting(module, own, module.forward)

    def _noting(self, module: nn.Module, names: list[str], forward: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: Any, **named: Any) -> Any:
            self.passing()
            if self.weights is not None:
                for name in names:
                    value = getattr(module, name.rpartition(".")[2])
                    with unseen():
                        self.weights[name] = value.detach().clone()
            return forward(*arguments, **named)

        return noting

    def read(self, run: Callable[[], Any]) -> Weights:
        """The weights that `run`, a forward, uses."""
        self.weights = {}
        try:
            with torch.no_grad():
                run()
            return self.weights
        finally:
            self.weights = None
