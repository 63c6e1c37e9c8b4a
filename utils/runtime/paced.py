"""Compute at a chosen pace: layers that take the time of a GPU's and leave the CPU free.

Several ranks on one machine share its cores, so real layers of four ranks would slow each other down, which four GPUs
do not. A paced layer waits instead of computing. What is measured around it (communication, what overlaps, how
throughput grows with the number of ranks) is real.
"""

from __future__ import annotations

import math
import time
from numbers import Integral, Real
from typing import Any

import torch
from torch import nn

from utils.runtime.recorder import clock


def pause(seconds: float) -> None:
    """Wait until `seconds` have passed, the CPU free meanwhile. Late by about 0.1 ms, more on a busy machine."""
    _wait_until(clock() + _seconds("seconds", seconds))


class PacedLayer(nn.Module):
    """y = x · mean(weight), where forward takes `forward_seconds` and backward `backward_seconds`.

    parameters: how many numbers `weight` has, shape (parameters,): any size, the time does not depend on it.
    forward_seconds: at least 0. backward_seconds: twice that if left out, since a layer's backward multiplies twice,
        once for the gradient of its input and once for that of its weight, where the forward multiplies once.
    dtype: of `weight`.

    Both are counted from the moment the work is begun, the little that is really computed included; a layer so large
    that this takes longer is later than its pace. Every number in `weight` gets a gradient, the same for all.
    Raises ValueError for a size below 1, a time that is negative or not finite, a type without a point.
    """

    def __init__(
        self,
        parameters: int,
        forward_seconds: float,
        backward_seconds: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if isinstance(parameters, bool) or not isinstance(parameters, Integral) or parameters < 1:
            raise ValueError(f"parameters is {parameters!r}; a paced layer has a whole number of at least 1.")
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise ValueError(f"dtype is {dtype!r}; weights are of a floating type, such as torch.float16.")
        self.forward_seconds = _seconds("forward_seconds", forward_seconds)
        of_backward = 2 * self.forward_seconds if backward_seconds is None else backward_seconds
        self.backward_seconds = _seconds("backward_seconds", of_backward)
        self.weight = nn.Parameter(torch.ones(int(parameters), dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: any shape; returns the same shape."""
        return _Paced.apply(x, self.weight, self.forward_seconds, self.backward_seconds)

    def extra_repr(self) -> str:
        forward, backward = 1e3 * self.forward_seconds, 1e3 * self.backward_seconds
        return f"{self.weight.numel():,} parameters, forward {forward:g} ms, backward {backward:g} ms"


class _Paced(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, forward_seconds: float, backward_seconds: float
    ) -> torch.Tensor:
        end = clock() + forward_seconds
        ctx.save_for_backward(x, weight)
        ctx.backward_seconds = backward_seconds
        y = x * weight.mean()
        _wait_until(end)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, None, None]:
        end = clock() + ctx.backward_seconds
        x, weight = ctx.saved_tensors
        of_x = grad * weight.mean() if ctx.needs_input_grad[0] else None
        of_weight = None
        if ctx.needs_input_grad[1]:
            of_weight = ((grad * x).sum() / weight.numel()).to(weight.dtype).expand(weight.shape).contiguous()
        _wait_until(end)
        return of_x, of_weight, None, None


def _wait_until(end: float) -> None:
    while (left := end - clock()) > 0:
        time.sleep(left)


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value!r}; give a finite time in seconds of at least 0, such as 0.010.")
    return float(value)
