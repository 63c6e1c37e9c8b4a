"""Paced layers take their time, compute what they say, and leave the CPU to others."""

import math
import time

import numpy as np
import pytest
import torch

from utils.runtime.paced import PacedLayer, pause


def seconds(call):
    start = time.perf_counter()
    out = call()
    return time.perf_counter() - start, out


def test_forward_and_backward_take_their_time():
    layer = PacedLayer(1000, 0.040)
    x = torch.ones(3, 4, requires_grad=True)
    forward, y = seconds(lambda: layer(x))
    backward, _ = seconds(lambda: y.sum().backward())
    assert forward >= 0.040 and backward >= 0.080
    # The least of a few: a busy machine wakes a sleeper late.
    assert min(seconds(lambda: layer(x))[0] for _ in range(5)) < 0.050
    chosen = PacedLayer(1000, 0.0, 0.030)
    backward, _ = seconds(lambda: chosen(x).sum().backward())
    assert backward >= 0.030


@pytest.mark.parametrize("parameters", [1, 7, 2_000_000])
def test_every_parameter_gets_the_gradient_of_the_formula(parameters):
    layer = PacedLayer(parameters, 0.0)
    with torch.no_grad():
        layer.weight.mul_(torch.linspace(0.5, 1.5, parameters) if parameters > 1 else 2.0)
    x = torch.tensor([[1.0, -2.0, 4.0]], requires_grad=True)
    layer(x).square().sum().backward()
    paced = layer.weight.grad.clone(), x.grad.clone()
    layer.weight.grad = x.grad = None
    (x * layer.weight.mean()).square().sum().backward()
    assert paced[0].shape == (parameters,) and paced[0].is_contiguous()
    torch.testing.assert_close(paced, (layer.weight.grad, x.grad))


def test_frozen_layers_and_inputs_without_gradient():
    layer = PacedLayer(5, 0.0)
    layer(torch.ones(2)).sum().backward()
    assert layer.weight.grad is not None
    frozen = PacedLayer(5, 0.0).requires_grad_(False)
    x = torch.ones(2, requires_grad=True)
    frozen(x).sum().backward()
    assert frozen.weight.grad is None and x.grad is not None
    half = PacedLayer(5, 0.0, dtype=torch.bfloat16)
    half(torch.ones(2, dtype=torch.bfloat16)).sum().backward()
    assert half.weight.grad.dtype == torch.bfloat16


def test_the_cpu_is_free_meanwhile():
    layer = PacedLayer(100, 0.2)
    before = time.process_time()
    layer(torch.ones(1))
    pause(0.2)
    assert time.process_time() - before < 0.05


def test_it_says_what_it_is():
    assert str(PacedLayer(1_000_000, 0.010)) == "PacedLayer(1,000,000 parameters, forward 10 ms, backward 20 ms)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 0.01), "parameters is 0; "),
        ((2.0, 0.01), "parameters is 2.0; "),
        ((10, -0.01), "forward_seconds is -0.01; give a finite time in seconds of at least 0"),
        ((10, math.inf), "forward_seconds is inf; "),
        ((10, 0.01, math.nan), "backward_seconds is nan; "),
        ((10, "fast"), "forward_seconds is 'fast'; "),
    ],
)
def test_sizes_and_times_out_of_range_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        PacedLayer(*arguments)


@pytest.mark.parametrize("bad", [-0.1, math.nan, "1"])
def test_a_pause_out_of_range_is_refused(bad):
    with pytest.raises(ValueError, match="seconds is "):
        pause(bad)


@pytest.mark.parametrize("dtype", ["float16", torch.int64])
def test_a_type_without_a_point_is_refused(dtype):
    with pytest.raises(ValueError, match="floating type"):
        PacedLayer(4, 0.0, dtype=dtype)


def test_numpys_numbers_are_numbers():
    assert PacedLayer(np.int64(4), np.float32(0)).weight.numel() == 4
