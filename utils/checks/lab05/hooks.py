"""In a rank: a hook that returns something by mistake is named where it does, and not where that is used.

What a hook of a module returns takes the place of the module's inputs, of its outputs, or of their gradients. A lambda
that calls two functions returns a pair; the next module then fails on it, far from the hook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from utils.checks.verdict import with_article

# How a hook is registered; which of its arguments a return value takes the place of; what that is in words.
REPLACED = {
    "register_forward_pre_hook": (1, "the module's inputs"),
    "register_forward_hook": (2, "the module's output"),
    "register_full_backward_pre_hook": (1, "the gradients of the module's output"),
    "register_full_backward_hook": (1, "the gradients of the module's inputs"),
}


class HookReturned(TypeError):
    """A hook returned what cannot stand in the place that it takes."""


@contextmanager
def returns_guarded() -> Iterator[None]:
    """Inside, a hook of a module raises HookReturned if it returns other tensors than those it would replace.

    Tensors of the same shapes may be returned: so does who wraps inputs in an autograd function.
    """
    with ExitStack() as stack:
        for name, (place, words) in REPLACED.items():
            plain = getattr(nn.Module, name)
            stack.enter_context(patch.object(nn.Module, name, _registering(plain, name, place, words)))
        yield


def _registering(plain: Callable[..., Any], name: str, place: int, words: str) -> Callable[..., Any]:
    @wraps(plain)
    def register(module: nn.Module, hook: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if named.get("with_kwargs"):  # it gets and returns other things
            return plain(module, hook, *arguments, **named)

        def watched(*given: Any) -> Any:
            returned = hook(*given)
            if returned is not None and _shapes(returned) != _shapes(given[place]):
                kind = with_article(type(returned).__name__)
                raise HookReturned(
                    f"the hook `{_name(hook)}` returns {kind}, which takes the place of {words}: return None (`{name}`)"
                )
            return returned

        return plain(module, watched, *arguments, **named)

    return register


def _function(hook: Callable[..., Any]) -> Callable[..., Any]:
    """What a partial binds arguments to."""
    return _function(hook.func) if isinstance(hook, partial) else hook


def _name(hook: Callable[..., Any]) -> str:
    return getattr(_function(hook), "__name__", type(hook).__name__).replace("<lambda>", "lambda")


def _shapes(value: Any) -> list[Any]:
    """Of its tensors, and the types of its other parts, whether it is one of them, a list, a tuple or a dict."""
    return [leaf.shape if isinstance(leaf, torch.Tensor) else type(leaf) for leaf in tree_leaves(value)]
