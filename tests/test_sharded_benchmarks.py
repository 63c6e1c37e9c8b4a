"""What the benchmarks of chapter 05 compare: the same training, overlapped or not as they say. No clocks."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from benchmarks.sharded import Gathers, in_memory, slowest, torchs_step, your_step
from utils import Cluster, launch
from utils.theory.lifecycle import lifecycle

COUNT, WIDTH = 4, 8


def sgd(tensors):
    return torch.optim.SGD(tensors, lr=0.1)


class Noting(nn.Linear):
    """Notes when it begins to compute, in forward and in backward."""

    def __init__(self, notes):
        super().__init__(WIDTH, WIDTH, bias=False)
        self.notes = notes

    def forward(self, x):
        self.notes.append("begin")
        y = super().forward(x)
        return y


class NotingGathers(Gathers):
    def __init__(self, notes):
        super().__init__()
        self.notes = notes

    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        self.notes.append("ahead" if async_op else "waited for")
        return super().__call__(output_tensor, input_tensor, group, async_op)


def make(notes):
    torch.manual_seed(0)
    return [Noting(notes) for _ in range(COUNT)]


def batch(rank):
    return torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(rank)).requires_grad_()


def trained(rank, prefetch, best):
    """Whole weights after two steps, and what was noted in the second."""
    notes = []
    layers, inputs = make(notes), batch(rank)
    if prefetch is not None:
        step = your_step(prefetch, layers, inputs, sgd)
    else:
        step = torchs_step(layers, inputs, sgd, best, NotingGathers(notes))
    step()
    notes.clear()
    step()
    noted = list(notes)
    if prefetch is None:
        return [layer.weight.full_tensor().detach() for layer in layers], noted
    weights = []
    for layer in layers:
        layer.register_forward_pre_hook(lambda layer, _: weights.append(layer.weight.detach().clone()))
    with torch.no_grad():
        nn.Sequential(*layers)(inputs)
    return weights, noted


@pytest.fixture(scope="module")
def prefetch():
    from utils.notebooks.answers import load_answers  # not in the ranks, which import this file: it takes a second

    return load_answers("05", "solutions").prefetch


@pytest.fixture(scope="module")
def runs(prefetch):
    kinds = {"yours": (prefetch, True), "best": (None, True), "as it comes": (None, False)}
    return {name: launch(trained, 2, *kind, true_reduce_scatter=True) for name, kind in kinds.items()}


@pytest.mark.parametrize("kind", ["yours", "best", "as it comes"])
def test_all_train_as_one_process_does(runs, kind):
    layers = make([])
    optimizer = sgd([layer.weight for layer in layers])
    for _ in range(2):
        for rank in range(2):
            (nn.Sequential(*layers)(batch(rank)).sum() / 2).backward()
        optimizer.step()
        optimizer.zero_grad()
    for weights, _ in runs[kind].values:
        for weight, layer in zip(weights, layers, strict=True):
            torch.testing.assert_close(weight, layer.weight.detach(), rtol=1e-5, atol=1e-6)


def test_at_its_best_each_gather_is_issued_ahead(runs):
    for _, notes in runs["best"].values:
        assert notes == ["ahead", *["ahead", "begin"] * (COUNT - 1), "begin", *["ahead"] * COUNT]


def test_as_it_comes_each_gather_is_waited_for(runs):
    for _, notes in runs["as it comes"].values:
        assert notes == [*["waited for", "begin"] * COUNT, *["waited for"] * COUNT]


def waited_for_late(run):
    """Of the reduce-scatters of the second step, how many were waited for after the next was issued."""
    found = [op for op in run.timeline[0] if op.kind == "reduce_scatter"][COUNT:]
    return sum(op.waited_at > after.issued_at for op, after in pairwise(found))


def test_at_its_best_no_reduce_scatter_is_waited_for_in_backward(runs):
    assert waited_for_late(runs["best"]) == COUNT - 1
    found = [op for op in runs["best"].timeline[0] if op.kind == "reduce_scatter"]
    assert all(op.waited_at is not None for op in found)


@pytest.mark.parametrize("ranks", [2, 4])
def test_parameters_at_the_peak_are_the_formulas(prefetch, ranks):
    law = lifecycle([1024 * 1024] * 8, ranks, forward_prefetch=1).peak.bytes
    found = launch(in_memory, ranks, prefetch, True, "parameters", true_reduce_scatter=True, timeout=120).values
    assert found == pytest.approx([law] * ranks, rel=0.02)


def test_a_step_is_as_long_as_on_its_slowest_rank():
    assert slowest(({"a": [1.0, 4.0]}, {"a": [2.0, 3.0]})) == {"a": [2.0, 4.0]}


def test_the_simulation_knows_the_link_alone():
    from benchmarks.prefetch import simulated

    slow, fast = (simulated(Cluster(2, 1, speed), 0.001) for speed in (100e6, 400e6))
    assert slow > fast > 8 * 0.150
