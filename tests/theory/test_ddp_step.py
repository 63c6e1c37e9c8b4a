"""A step of DDP for a whole model: buckets as DDP lays them, and times that can be computed by hand."""

import math

import pytest

from utils.theory.buckets import bucket_bytes, ddp_buckets, gradient_bytes
from utils.theory.ddp_step import ddp_step
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.units import GB, MiB

LLAMA, GPT2 = PRESETS["Llama-2-7B"], PRESETS["GPT-2"]
LINK = Link(50 * GB, 5e-6)


def step(model=LLAMA, world_size=8, link=LINK, tokens=4096, flops=4e14, **named):
    return ddp_step(model, world_size, link, tokens, flops, **named)


@pytest.mark.parametrize("model", [LLAMA, GPT2])
@pytest.mark.parametrize("cap", [None, 25 * MiB, 1000 * MiB])
def test_buckets_are_ddps_and_hold_every_gradient(model, cap):
    found = step(model, bucket_cap_bytes=cap)
    sizes = gradient_bytes(model)
    assert found.buckets == bucket_bytes(ddp_buckets(sizes, bucket_cap_bytes=cap), sizes)
    assert sum(found.buckets) == found.gradient_bytes == 4 * model.parameters
    assert found.held(True) == 4 * model.parameters and found.held(False) == 8 * model.parameters


def test_compute_is_six_operations_for_each_multiplied_parameter_and_token():
    norms = sum(t.parameters for t in LLAMA.tensors if len(t.shape) == 1)
    multiplied = LLAMA.parameters - LLAMA.embedding_parameters - norms
    assert step().step.compute == pytest.approx(6 * multiplied * 4096 / 4e14)
    vectors = sum(t.parameters for t in GPT2.tensors if len(t.shape) == 1)
    tied = GPT2.parameters - vectors - GPT2.learned_positions * GPT2.hidden  # the embedding counts as output matrix
    assert step(GPT2).step.compute == pytest.approx(6 * tied * 4096 / 4e14)


def test_communication_is_the_rings():
    found = step(bytes_per_element=2)
    assert found.step.communication == pytest.approx(
        2 * 7 / 8 * 2 * LLAMA.parameters / (50 * GB) + 14 * 5e-6 * len(found.buckets)
    )
    assert found.hidden == pytest.approx(1 - found.step.exposed / found.step.communication)
    assert step(world_size=1).step.communication == 0 and step(world_size=1).hidden == 1


def test_tensors_of_a_bucket_together_step_as_they_do_one_by_one():
    found = step(GPT2, bucket_cap_bytes=25 * MiB, tokens=512)
    layers = []
    for tensor in GPT2.tensors:
        multiplied = len(tensor.shape) > 1 and not tensor.name.startswith(("embedding", "positions"))
        layers.append(Layer(2 * tensor.parameters * 512 / 4e14 * multiplied, gradient_bytes=4 * tensor.parameters))
    layers.append(Layer(2 * GPT2.embedding_parameters * 512 / 4e14))
    laid = ddp_buckets(gradient_bytes(GPT2), bucket_cap_bytes=25 * MiB)
    numbers = [[len(GPT2.tensors) - 1 - i for i in bucket] for bucket in laid]
    assert found.step.seconds == pytest.approx(simulate_step(layers, 8, LINK, buckets=numbers).seconds)


def test_a_faster_link_and_more_tokens_expose_less():
    exposed = [step(link=Link(rate * GB)).step.exposed for rate in (10, 50, 450)]
    assert exposed == sorted(exposed, reverse=True) and exposed[0] > exposed[-1]
    assert step(tokens=65536).step.exposed < step(tokens=512).step.exposed


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"tokens": 0}, "tokens is 0"),
        ({"tokens": True}, "tokens is True"),
        ({"flops": math.inf}, "flops is inf"),
        ({"flops": "4e14"}, "flops is '4e14'"),
        ({"model": "gpt2"}, "architecture is 'gpt2'"),
        ({"bucket_cap_bytes": 0}, "bucket_cap_bytes is 0"),
        ({"world_size": 0}, "world_size is 0"),
        ({"link": 5}, "link is 5"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(named, told):
    with pytest.raises(ValueError, match=told):
        step(**named)


def test_held_takes_yes_or_no():
    with pytest.raises(ValueError, match="gradient_as_bucket_view is 1"):
        step().held(1)
