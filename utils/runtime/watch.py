"""Watches a training step: tells when a module or an optimizer begins and is done, and what autograd keeps meanwhile.

Hooks only: the step computes what it would compute without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakSet

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves

Tell = Callable[[str, str, bool], None]  # phase, where, done: see `holdings.Sample`


class Watch:
    """While its `on` is entered, `tell` is called at these events, and `kept` gives what autograd keeps:

    1. "forward" of the whole model and of each module in it that has no modules inside, begins and is done;
    2. "backward" of each of these modules begins, when the gradient of its output is there;
    3. "backward" of the whole model begins with the first of these, and is done when autograd is;
    4. "step" of each optimizer begins and is done.
    """

    def __init__(self, model: nn.Module | None, optimizers: Iterable[Any], tell: Tell) -> None:
        self._model, self._optimizers, self._tell = model, tuple(optimizers), tell
        self._kept: WeakSet[_Kept] = WeakSet()
        self._backward = False

    def kept(self) -> list[torch.Tensor]:
        """The tensors that autograd has saved and not yet let go, weights among them."""
        return [each.tensor for each in self._kept]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Install the hooks; remove them at the end, also when the body raises."""
        with ExitStack() as stack:
            for name, module in self._modules():
                for handle in (
                    module.register_forward_pre_hook(lambda _m, _args, name=name: self._before_forward(name)),
                    module.register_forward_hook(lambda _m, _args, out, name=name: self._after_forward(name, out)),
                ):
                    stack.callback(handle.remove)
            for optimizer in self._optimizers:
                if isinstance(optimizer, Optimizer):
                    for handle in (
                        optimizer.register_step_pre_hook(lambda *_: self._tell("step", "", False)),
                        optimizer.register_step_post_hook(lambda *_: self._tell("step", "", True)),
                    ):
                        stack.callback(handle.remove)
            stack.enter_context(saved_tensors_hooks(self._pack, lambda kept: kept.tensor))
            yield

    def _modules(self) -> Iterator[tuple[str, nn.Module]]:
        """The whole model, named "", and the modules without modules inside, by their names in the learner's model."""
        if self._model is None:
            return
        for name, module in self._model.named_modules():
            if module is self._model or not any(True for _ in module.children()):
                yield name.removeprefix("module."), module

    def _pack(self, tensor: torch.Tensor) -> _Kept:
        kept = _Kept(tensor)
        self._kept.add(kept)
        return kept

    def _before_forward(self, name: str) -> None:
        if not name:
            self._backward = False  # a backward that failed was never done
        self._tell("forward", name, False)

    def _after_forward(self, name: str, out: Any) -> None:
        self._tell("forward", name, True)
        if name:
            for tensor in tree_leaves(out):
                if isinstance(tensor, torch.Tensor) and tensor.requires_grad and not tensor.is_leaf:
                    tensor.register_hook(lambda _grad: self._begin_backward(name))
                    break

    def _begin_backward(self, name: str) -> None:
        if not self._backward:
            self._backward = True
            torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)
            self._tell("backward", "", False)
        self._tell("backward", name, False)

    def _end_backward(self) -> None:
        self._backward = False
        self._tell("backward", "", True)


class _Kept:
    """What autograd holds in place of a saved tensor; it is gone as soon as autograd lets go."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()  # the tensor itself, if it is the output of what saved it, would never be freed
