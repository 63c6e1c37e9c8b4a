"""A step of FSDP: its memory against traces of `fully_shard`, against the other laws, and its time against theirs."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from utils.theory.architecture import Architecture
from utils.theory.breakdown import training_memory
from utils.theory.flops import PEAK_FLOPS
from utils.theory.fsdp_step import PRECISIONS, FsdpStep, fsdp_step, memory_over_step
from utils.theory.lifecycle import lifecycle
from utils.theory.models import PRESETS
from utils.theory.moments_sharded import Units
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.traffic import step_bytes
from utils.theory.units import GB

RATE = 0.4 * PEAK_FLOPS["H100"]
LINK = Link(50 * GB, 5e-6)
LLAMA = {"hidden": 512, "layers": 6, "heads": 8, "kv_heads": 4, "head_dim": 64, "ffn": 1408, "vocabulary": 1000}
GPT = LLAMA | {"kv_heads": 8, "ffn": 2048, "layers": 5, "gated_mlp": False, "norm": "layer without bias"}
# Architecture, ranks, layers in a unit, units ahead, resharded, recomputed, bf16 copies, tokens, sequences.
CASES = [
    (LLAMA, 8, 1, 1, True, False, True, 256, 2),
    (LLAMA, 8, 1, 1, True, True, True, 256, 2),
    (LLAMA, 8, 1, 0, True, False, True, 256, 2),
    (LLAMA, 8, 1, 2, True, False, True, 256, 2),
    (LLAMA, 8, 2, 1, True, False, True, 256, 2),
    (LLAMA, 4, 4, 1, True, True, True, 256, 2),
    (LLAMA, 8, 2, 2, True, True, True, 256, 4),
    (LLAMA, 8, 1, 1, False, False, True, 256, 2),
    (LLAMA, 8, 3, 1, False, True, True, 256, 4),
    (LLAMA, 8, 2, 1, True, False, False, 256, 2),
    (GPT, 4, 1, 1, True, True, True, 256, 2),
    (GPT, 4, 2, 1, True, False, True, 256, 2),
]


@pytest.fixture(scope="module")
def traced():
    script = Path(__file__).with_name("traced_units.py")
    done = subprocess.run([sys.executable, str(script), json.dumps(CASES)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def predicted(case):
    """{"forward 0": bytes, …}, by unit."""
    fields, ranks, layers, ahead, reshard, recompute, mixed, sequence, batch = case
    units, precision = Units(layers, ahead, reshard), PRECISIONS["fp32 shards, bf16 copies" if mixed else "fp32"]
    found = {}
    for moment in memory_over_step(Architecture(**fields), ranks, sequence, batch, units, precision, recompute):
        phase, _, rest = moment.name.partition(", ")
        if "block" in rest:
            name = f"{phase} {int(rest.split(',')[0].split()[1]) // layers}"
            found[name] = max(found.get(name, 0), moment.total - moment.temporaries)
    return found


@pytest.mark.rest
@pytest.mark.parametrize("case", range(len(CASES)))
def test_every_unit_is_traced_as_predicted(traced, case):
    """Forward within 0.6%: a unit that is an nn.Sequential holds its input until it is through, which is not counted
    here. Backward to the byte with Llama's blocks; LayerNorm's statistics are fp32 here and bf16 in the trace."""
    found, law = traced[case], predicted(CASES[case])
    assert law.keys() == found.keys() - {"all"}
    for name, size in law.items():
        assert size == pytest.approx(found[name], rel=0.006 if name.startswith("forward") else 3e-4), name


SHARED = [(model, recompute) for model in ("GPT-2", "Llama-2-7B", "Gemma-2-9B", "Llama-2-70B") for recompute in (0, 1)]


@pytest.mark.parametrize(("model", "recompute"), SHARED)
@pytest.mark.parametrize(("precision", "recipe", "more"), [
    ("fp32", "fp32", {}),
    ("fp32 shards, bf16 copies", "fsdp2", {}),
    ("the same, reduced in bf16", "fsdp2", {"reduced_bytes": 2}),
])  # fmt: skip
def test_with_a_layer_to_a_unit_it_is_the_breakdown(model, recompute, precision, recipe, more):
    """Every moment of `training_memory` is one of these, and none of these is larger than its peak."""
    how = "full" if recompute else "none"
    law = training_memory(PRESETS[model], 64, "fsdp", 1024, 2, how, recipe=recipe, **more)
    step = fsdp_step(PRESETS[model], 64, LINK, RATE, 1024, 2, precision=precision, recompute=bool(recompute))
    names = {moment.name: moment for moment in step.moments}
    for moment in law.moments:
        if not moment.name.startswith("forward"):  # there it counts one unit ahead as here with 0
            assert names[moment.name] == moment
    assert (step.peak.total, step.at_rest) == (law.total, law.at_rest)
    assert step.fits(law.total) and not step.fits(law.total - 1)


@pytest.mark.parametrize(
    ("layers", "ahead", "reshard"), [(1, 1, True), (2, 1, True), (3, 2, True), (2, 0, True), (4, 1, False)]
)
def test_parameters_are_those_of_the_lifecycle(layers, ahead, reshard):
    """Shards, whole copies and what arrives, at the events that both name; 8 ranks divide every tensor here."""
    model = Architecture(512, 8, 8, 4, 64, 1408, vocabulary=1000)
    units, each = -(-8 // layers), model.parameters_per_layer
    law = lifecycle(
        [each * min(layers, 8 - first) for first in range(0, 8, layers)], 8, root=model.parameters - 8 * each,
        reshard=reshard, forward_prefetch=ahead, backward_prefetch=ahead, gathered_bytes=2, late_free=True,
    )  # fmt: skip
    step = fsdp_step(model, 8, LINK, RATE, 64, layers_in_unit=layers, ahead=ahead, reshard=reshard)
    names = {moment.name: moment for moment in step.moments}
    for unit in range(units):
        block, last = unit * layers, min(8, (unit + 1) * layers) - 1
        found = names[f"forward, block {block}"]
        assert found.weights + found.gathered + found.buffers == law[f"forward of {unit} begins"].bytes
        found, event = names[f"backward, block {last}, MLP"], law[f"backward of {unit} begins"]
        behind = min(8, last + 1 + layers) - last - 1
        assert found.weights + found.gathered + found.buffers - 4 * behind * each == event.bytes


def test_states_of_llama_2_70b_are_those_that_are_known():
    model = PRESETS["Llama-2-70B"]
    many, few = (fsdp_step(model, gpus, LINK, RATE, 2048, recompute=True) for gpus in (64, 8))
    counters = 4 * len(model.tensors)
    assert many.at_rest - counters == 16 * model.parameters / 64 == 17_244_162_048
    assert few.at_rest - counters == 16 * model.parameters / 8 == 137_953_296_384
    assert many.fits(80 * GB) and not few.fits(80 * GB)
    assert not fsdp_step(model, 64, LINK, RATE, 2048).fits(80 * GB)
    bf16 = fsdp_step(model, 64, LINK, RATE, 2048, precision="bf16")
    assert bf16.at_rest - counters == 8 * model.parameters / 64


def test_bytes_on_the_wire_are_those_of_the_traffic():
    """With a slow link and without latency the communication's seconds are its bytes."""
    model, link = PRESETS["Llama-2-7B"], Link(1e9)
    root = model.parameters - model.layers * model.parameters_per_layer
    step = fsdp_step(model, 8, link, RATE, 512)
    law = step_bytes(model.parameters, "fsdp", 8, gradient_bytes_per_element=4, root_parameters=root)
    assert step.time.communication * 1e9 == pytest.approx(law.per_rank, rel=1e-9)
    assert (step.gathers, step.units) == (2 * 32 + 1, 32)
    kept = fsdp_step(model, 8, link, RATE, 512, reshard=False, layers_in_unit=3)
    assert (kept.gathers, kept.units) == (11 + 1, 11)


def test_time_is_the_simulated_steps_where_there_is_no_root_to_speak_of():
    model = replace(PRESETS["Llama-2-7B"], vocabulary=1)
    step = fsdp_step(model, 8, LINK, RATE, 4096)
    each, matrices = model.parameters_per_layer, model.parameters_per_layer - 2 * model.hidden
    seconds = (2 * matrices + 4 * model.hidden * 4096) * 4096 / RATE
    layer = Layer(seconds, gradient_bytes=4 * each, parameter_bytes=2 * each)
    law = simulate_step([layer] * model.layers, 8, LINK, "fsdp")
    assert step.time.seconds == pytest.approx(law.seconds, rel=1e-3)
    assert step.time.exposed == pytest.approx(law.exposed, rel=0.02)
    again = fsdp_step(model, 8, LINK, RATE, 4096, recompute=True)
    assert again.time.compute == pytest.approx(4 / 3 * step.time.compute, rel=1e-3)


def test_what_the_switches_do_to_the_time():
    model = PRESETS["Llama-2-7B"]

    def seconds(**more):
        return fsdp_step(model, 64, LINK, RATE, 4096, **more).time.seconds

    assert seconds(ahead=1) < seconds(ahead=0)
    assert seconds(reshard=False) < seconds()
    assert seconds(precision="the same, reduced in bf16") < seconds()
    step = fsdp_step(model, 64, LINK, RATE, 4096)
    assert isinstance(step, FsdpStep) and 0 <= step.hidden <= 1
    assert step.tokens_per_second == 4096 / step.time.seconds


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layers_in_unit": 0}, "layers_in_unit is 0"),
        ({"ahead": -1}, "ahead is -1"),
        ({"reshard": 2}, "reshard is 2"),
        ({"precision": "fp8"}, "precision is 'fp8'"),
        ({"recompute": "full"}, "recompute is 'full'"),
        ({"sequence": 0}, "sequence is 0"),
        ({"micro_batch": 1.5}, "micro_batch is 1.5"),
        ({"flops": -1}, "flops is -1"),
        ({"link": 1e9}, "link is 1000000000.0; give a Link"),
        ({"model": "Llama-2-7B"}, "'Llama-2-7B'"),
        ({"world_size": 0}, "world_size is 0"),
    ],
)
def test_what_is_out_of_range_is_refused_in_a_sentence(changes, words):
    given = {"model": PRESETS["GPT-2"], "world_size": 8, "link": LINK, "flops": RATE, "sequence": 512} | changes
    with pytest.raises(ValueError, match=words.replace("(", r"\(")) as caught:
        fsdp_step(**given)
    assert "\n" not in str(caught.value)
