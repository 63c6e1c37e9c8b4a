"""In a rank: notes which optimizers an answer makes, and what of torch's own it makes beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch.nn.parallel import DistributedDataParallel

from utils.runtime.held import Held

OPTIMIZERS: Mapping[str, Callable[[list[torch.Tensor]], torch.optim.Optimizer]] = {
    "SGD": lambda tensors: torch.optim.SGD(tensors, lr=1.0),
    "small SGD": lambda tensors: torch.optim.SGD(tensors, lr=0.003),
    "momentum": lambda tensors: torch.optim.SGD(tensors, lr=0.05, momentum=0.9),
    "Adam": lambda tensors: torch.optim.Adam(tensors, lr=0.01, eps=1e-4, foreach=False),
    "small Adam": lambda tensors: torch.optim.Adam(tensors, lr=1e-4, eps=1e-6, foreach=False),
}


@dataclass
class Made:
    """The optimizers that an answer has made through `make`, and the name of what it made past it."""

    kind: str
    optimizers: list[torch.optim.Optimizer] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    held: Held | None = None
    past: str = ""
    _making: bool = False

    def make(self, tensors: Any) -> torch.optim.Optimizer:
        """What the answer calls as `make_optimizer`."""
        tensors = list(tensors)
        self.types |= {str(tensor.dtype).removeprefix("torch.") for tensor in tensors}
        self._making = True
        try:
            optimizer = OPTIMIZERS[self.kind](tensors)
        finally:
            self._making = False
        self.optimizers.append(optimizer)
        if self.held is not None:
            step, held = optimizer.step, self.held

            def unseen(*arguments: Any, **named: Any) -> Any:
                with held.paused():
                    return step(*arguments, **named)

            optimizer.step = unseen
        return optimizer

    @contextmanager
    def others_noted(self) -> Iterator[None]:
        """Inside: note the DDP module, or the optimizer, that is made in another way."""
        make_module, make_optimizer = DistributedDataParallel.__init__, torch.optim.Optimizer.__init__

        def module(made: DistributedDataParallel, *arguments: Any, **named: Any) -> None:
            self.past = self.past or type(made).__name__
            make_module(made, *arguments, **named)

        def optimizer(made: torch.optim.Optimizer, *arguments: Any, **named: Any) -> None:
            if not self._making:
                self.past = self.past or type(made).__name__
            make_optimizer(made, *arguments, **named)

        with (
            patch.object(DistributedDataParallel, "__init__", module),
            patch.object(torch.optim.Optimizer, "__init__", optimizer),
        ):
            yield
