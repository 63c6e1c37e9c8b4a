"""What Adam's step needs for a while, against PyTorch's memory tracker."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from utils.theory.architecture import Architecture
from utils.theory.breakdown import training_memory
from utils.theory.models import PRESETS
from utils.theory.optimizer_memory import OPTIMIZER_STEPS, temporaries
from utils.theory.recipes import PRECISION_RECIPES, Recipe
from utils.theory.units import GB

FP32, LLAMA = PRECISION_RECIPES["fp32"], PRESETS["Llama-2-7B"]
STATES = 16  # bytes per parameter


def peak(shapes, foreach):
    """Bytes of the second step of matrices of these shapes, in which the optimizer's step is the largest moment."""
    with FakeTensorMode():
        layers = nn.ModuleList(nn.Linear(inputs, outputs, bias=False) for outputs, inputs in shapes)
        optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3, foreach=foreach)
        tracker = MemTracker()
        tracker.track_external(layers, optimizer)
        with tracker:
            for _ in range(2):
                for layer in layers:
                    layer.weight.grad = torch.ones_like(layer.weight)
                tracker.reset_mod_stats()
                tracker._peak_mem.clear()
                tracker._peak_mem_snap.clear()
                optimizer.step()
                optimizer.zero_grad()
        (snapshot,) = tracker.get_tracker_snapshot("peak").values()
    return snapshot["Total"]


@pytest.mark.parametrize(("how", "foreach"), [("foreach", True), ("for-loop", False)])
@pytest.mark.parametrize("model", [Architecture(256, 4, 8, vocabulary=900), Architecture(128, 1, 2, vocabulary=7000)])
def test_the_step_is_traced_as_predicted(model, how, foreach):
    shapes = [tensor.shape if len(tensor.shape) == 2 else (1, *tensor.shape) for tensor in model.tensors]
    seen = peak(shapes, foreach)
    counters = 4 * len(shapes)
    assert seen == STATES * model.parameters + counters + temporaries(model, "ddp", 1, FP32, how)
    step = training_memory(model, 1, "ddp", 1, recipe="fp32", optimizer_step=how).moments[-1]
    assert step.total - step.activations == seen


def test_with_foreach_the_peak_is_20_bytes_per_parameter():
    whole = training_memory(LLAMA, 8, "ddp", 128, recipe="fp32")
    assert whole.peak_moment.name == "optimizer step"
    assert whole.total / LLAMA.parameters == pytest.approx(20, rel=1e-5)
    assert whole.parts["temporaries"] == 4 * LLAMA.parameters
    assert whole.at_rest == 16 * LLAMA.parameters + 4 * len(LLAMA.tensors)
    assert not whole.fits(19 * LLAMA.parameters)


@pytest.mark.parametrize("strategy", ["zero1", "zero2", "zero3", "fsdp"])
def test_they_are_shared_out_as_the_optimizer_is(strategy):
    found = {how: temporaries(LLAMA, strategy, 64, FP32, how) for how in OPTIMIZER_STEPS}
    assert found["foreach"] == 4 * LLAMA.parameters / 64
    assert 0 == found["fused"] < found["for-loop"]


def test_what_steps_in_place_needs_nothing():
    for name in ("sgd", "sgd-momentum", "adam-8bit"):
        assert training_memory(LLAMA, 8, "ddp", 128, recipe=name).moments[-1].temporaries == 0
    fused, usual = (training_memory(LLAMA, 8, "zero1", 128, optimizer_step=how) for how in ("fused", None))
    assert fused == usual and training_memory(LLAMA, 8, "ddp", 128) != training_memory(
        LLAMA, 8, "ddp", 128, optimizer_step="fused"
    )


def test_activations_and_gathered_weights_follow_the_recipe():
    half, whole = (training_memory(LLAMA, 8, "fsdp", 512, recipe=recipe) for recipe in ("fsdp2", "fp32"))
    assert whole.moments[1].gathered == 2 * half.moments[1].gathered
    assert training_memory(LLAMA, 8, "ddp", 512, recipe="fp32") == training_memory(
        LLAMA, 8, "ddp", 512, recipe="fp32", element_bytes=4
    )
    own = Recipe("mine", 4, 4, 0, 8, 4, "here")
    assert (own.computed, PRECISION_RECIPES["fsdp2"].computed, PRECISION_RECIPES["zero-paper"].computed) == (4, 2, 2)


def test_zero3_reduces_what_its_recipe_communicates():
    layer = LLAMA.parameters_per_layer
    buffers = {m.name: m.buffers for m in training_memory(LLAMA, 8, "zero3", 512).moments}
    assert buffers["backward, block 1, end"] == (2 + 2) * layer
    wide = {m.name: m.buffers for m in training_memory(LLAMA, 8, "zero3", 512, reduced_bytes=4).moments}
    assert wide["backward, block 1, end"] == (2 + 4) * layer


def test_ddps_copies_of_gradients_come_with_the_backward_pass():
    """Before it the buckets alone are there, behind it gradients and buckets."""
    moments = training_memory(LLAMA, 8, "ddp", 512, gradient_as_bucket_view=False).moments
    psi = LLAMA.parameters
    assert (moments[0].name, moments[0].gradients, moments[0].buffers) == ("loss", 0, 2 * psi)
    assert (moments[-2].gradients, moments[-2].buffers) == (2 * psi, 2 * psi)
    assert all(0 < m.gradients < 0.03 * 2 * psi for m in moments[1:-2])
    views = training_memory(LLAMA, 8, "ddp", 512).moments
    assert all((m.gradients, m.buffers) == (2 * psi, 0) for m in views)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"strategy": "ddp", "prefetch": False}, "prefetch is False, but ddp gathers no weights: leave it out"),
        ({"strategy": "zero1", "reduced_bytes": 2}, "reduced_bytes is 2, but zero1 has no such buffer"),
        ({"strategy": "fsdp", "bucket_elements": 7}, "bucket_elements is 7, but fsdp has no such buckets: .* 'zero1'"),
        ({"strategy": "fsdp", "gradient_as_bucket_view": False}, "fsdp has none of DDP's buckets: .* 'ddp'"),
        ({"optimizer_step": "Fused"}, "optimizer_step is 'Fused', .* did you mean 'fused'"),
        ({"model": PRESETS["GPT-2"], "sequence": 1025}, "sequence is 1025, but the model has learned 1,024 positions"),
    ],
)
def test_what_means_nothing_is_refused(change, words):
    arguments = {"model": LLAMA, "world_size": 8, "strategy": "ddp", "sequence": 512} | change
    with pytest.raises(ValueError, match=words) as error:
        training_memory(**arguments)
    assert "\n" not in str(error.value)


def test_a_breakdown_is_one_line_in_a_list():
    text = repr(training_memory(LLAMA, 8, "ddp", 128))
    assert "\n" not in text and len(text) < 130 and f"{20 * LLAMA.parameters / GB:.1f}"[:4] in text
