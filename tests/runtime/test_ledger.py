"""The ledger counts each storage once, under the right kind, on plain objects in one process."""

import gc
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from utils.runtime.holdings import KINDS, Holdings
from utils.runtime.ledger import Ledger

FP32 = 4


def two_layers(features=8):
    return nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, features))


def count(model):
    return sum(p.numel() for p in model.parameters())


def train(model, optimizer=None, features=8, samples=3):
    model(torch.randn(samples, features)).square().sum().backward()
    if optimizer is not None:
        optimizer.step()


def test_a_model_alone_is_weights():
    model = two_layers()
    held = Ledger(model).at_rest()
    assert held.by_kind == {**dict.fromkeys(KINDS, 0), "weights": FP32 * count(model)}
    assert held.total == held.model_states == held.weights


def test_adam_in_fp32_costs_sixteen_bytes_per_parameter():
    model = two_layers()
    optimizer = torch.optim.Adam(model.parameters())
    ledger = Ledger(model, optimizer)
    train(model, optimizer)
    held, psi = ledger.at_rest(), count(model)
    assert (held.weights, held.gradients, held.moments) == (4 * psi, 4 * psi, 8 * psi)
    assert held.model_states == 16 * psi
    assert held.other == 4 * 4  # a step counter for each of four tensors
    optimizer.zero_grad()
    assert ledger.at_rest().gradients == 0


def test_master_weights_are_the_parameters_that_only_the_optimizer_has():
    model = two_layers().to(torch.bfloat16)
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters)
    ledger = Ledger(model, optimizer)
    model(torch.randn(3, 8, dtype=torch.bfloat16)).sum().backward()
    for master, p in zip(masters, model.parameters(), strict=True):
        master.grad = p.grad.float()
    optimizer.step()
    psi = count(model)
    held = ledger.at_rest()
    assert (held.weights, held.gradients, held.master_weights, held.moments) == (2 * psi, 6 * psi, 4 * psi, 8 * psi)
    optimizer.zero_grad()
    assert ledger.at_rest().model_states == 16 * psi
    assert Ledger(model, master_weights=masters).at_rest().master_weights == 4 * psi


def test_tied_weights_are_counted_once():
    model = two_layers()
    model[2].weight = model[0].weight
    train(model)
    held = Ledger(model).at_rest()
    assert held.weights == held.gradients == FP32 * (8 * 8 + 8 + 8)


def test_the_views_of_a_flat_buffer_are_counted_once_and_the_buffer_whole():
    flat = torch.zeros(100)
    model = nn.Linear(3, 5, bias=False)
    model.weight = nn.Parameter(flat[:15].view(5, 3))
    held = Ledger(model, weights=flat, other=[flat[20:], {"again": flat}]).at_rest()
    assert (held.weights, held.other) == (FP32 * 100, 0)


def test_frozen_parameters_are_weights_without_gradients_or_moments():
    model = two_layers()
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters())
    ledger = Ledger(model, optimizer)
    train(model, optimizer)
    held, trained = ledger.at_rest(), count(model[2])
    assert held.weights == FP32 * count(model)
    assert (held.gradients, held.moments, held.other) == (4 * trained, 8 * trained, 2 * 4)


def test_a_parameter_without_dimension_has_moments_too():
    model = nn.ParameterList([torch.ones(())])
    optimizer = torch.optim.Adam(model.parameters())
    model[0].square().backward()
    optimizer.step()
    held = Ledger(model, optimizer).at_rest()
    assert (held.moments, held.other) == (8, 4)


def test_sgd_with_and_without_momentum():
    for momentum, moments in ((0.0, 0), (0.9, 4)):
        model = two_layers()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
        train(model, optimizer)
        held = Ledger(model, optimizer).at_rest()
        assert (held.moments, held.other) == (moments * count(model), 0)


def test_buffers_of_modules_are_other():
    model = nn.BatchNorm1d(10)
    assert Ledger(model).at_rest().other == 4 * 10 + 4 * 10 + 8


def test_meta_tensors_and_emptied_storages_hold_nothing():
    assert Ledger(nn.Linear(1000, 1000, device="meta")).at_rest().total == 0
    model = nn.Linear(10, 10, bias=False)
    ledger = Ledger(model)
    model.weight.untyped_storage().resize_(0)
    assert ledger.at_rest().weights == 0
    model.weight.untyped_storage().resize_(400)
    assert ledger.at_rest().weights == 400


def test_a_shard_that_is_put_aside_keeps_its_kind_until_it_is_gone():
    model = nn.Linear(10, 10, bias=False)
    ledger = Ledger(model)
    shard = model.weight
    model.weight = nn.Parameter(torch.zeros(10, 10))
    assert ledger.at_rest().weights == 800
    del shard
    gc.collect()
    assert ledger.at_rest().weights == 400


def test_sparse_gradients_are_their_indices_and_values():
    model = nn.Embedding(1000, 4, sparse=True)
    model(torch.tensor([3, 5])).sum().backward()
    assert Ledger(model).at_rest().gradients == 2 * 8 + 2 * 4 * FP32


def test_tensors_that_change_are_asked_for_at_every_sample():
    held = [torch.zeros(10)]
    ledger = Ledger(moments=lambda: held)
    held[0] = torch.zeros(20)
    assert ledger.at_rest().moments == 80


def test_a_user_tensor_is_not_kept_alive():
    tensor = torch.zeros(10)
    ledger = Ledger(other=lambda: tensor if tensor is not None else ())
    assert ledger.at_rest().other == 40
    tensor = None
    assert ledger.at_rest().other == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": [nn.Linear(2, 2)]}, "model is a list; give a torch.nn.Module"),
        ({"optimizer": 3}, "optimizer is a int; give a torch.optim optimizer"),
        ({"master_weights": 3}, "master_weights is a int; give a tensor"),
        ({"moments": "state"}, "moments is a str; give a tensor"),
    ],
)
def test_what_can_hold_no_tensor_is_refused_in_a_sentence(arguments, words):
    with pytest.raises(TypeError, match=words):
        Ledger(**arguments)


def test_holdings_print_draw_and_travel():
    held = Holdings(weights=2000, gradients=2000, moments=8000, other=16)
    assert pickle.loads(pickle.dumps(held)) == held
    assert repr(held).splitlines()[0] == "weights          2,000 B"
    assert repr(held).splitlines()[-1] == "total           12,016 B"
    html = held._repr_html_()
    assert "<td>8,000 B</td><td>7.81 KiB</td>" in html
    assert held.allocator == "no GPU here, so no allocator to compare with"
    on_gpu = Holdings(weights=2000, gradients=2000, moments=8000, other=16, on_gpu=2000, allocated=2048)
    assert on_gpu.allocator == "on the GPU 2,000 B by the ledger; torch.cuda.memory_allocated says 2,048 B"
    assert (repr(on_gpu), on_gpu._repr_html_()) == (repr(held), html)  # a notebook prints the same everywhere


def test_without_a_gpu_there_is_no_allocator_to_ask():
    if torch.cuda.is_available():
        assert Ledger(two_layers()).at_rest().on_gpu == 0
    else:
        assert Ledger(two_layers()).at_rest().allocated is None


@pytest.mark.parametrize("things", [np.ones(4), [1, 2], lambda: 4, nn.Linear, {"a": "text"}])
def test_what_holds_no_tensor_is_refused(things):
    with pytest.raises(TypeError, match="give a tensor, a module"):
        Ledger(weights=things)


def test_an_iterator_of_tensors_is_read_once_and_kept():
    ledger = Ledger(weights=nn.Linear(4, 4).parameters())
    assert ledger.at_rest().weights == ledger.at_rest().weights == 80
