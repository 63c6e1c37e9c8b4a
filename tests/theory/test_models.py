"""The families' rules against counts of the modules themselves and against published integers, and what is refused."""

import csv
import math
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.architecture import Architecture
from utils.theory.families import gpt2, llama, mpt, opt, qwen3
from utils.theory.models import PRESETS, Llama, UnknownModel, preset
from utils.theory.shapes import BIASES, LAYOUTS, NORMS, QK_NORMS

DATA = Path(__file__).parents[1] / "data"


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows("model_parameters.csv"), ids=lambda row: row["model"])
def test_a_preset_has_the_parameters_of_the_module_and_of_the_publisher(row):
    model = PRESETS[row["model"]]
    assert model.parameters == int(row["parameters"])
    assert model.parameters_per_layer == int(row["parameters_per_layer"])
    assert model.largest_module_parameters == int(row["largest_module"])
    if row["published"]:
        assert model.parameters == int(row["published"])


@pytest.mark.parametrize("row", rows("mpt_parameters.csv"), ids=lambda row: f"{row['model']}-{row['seq']}")
def test_mpt_at_every_published_length(row):
    model = PRESETS[row["model"]]
    assert replace(model, learned_positions=int(row["seq"])).parameters == int(row["params_exact"])
    assert model.vocabulary == int(row["vocab"])


@pytest.mark.parametrize("row", rows("pythia_parameters.csv"), ids=lambda row: row["model"])
def test_pythia_without_its_embeddings(row):
    model = PRESETS[row["model"]]
    assert (model.non_embedding_parameters, model.parameters) == (
        int(row["non_embedding_params"]),
        int(row["total_params"]),
    )


@pytest.mark.parametrize("row", rows("gemma_parameters.csv"), ids=lambda row: row["model"])
def test_gemma_with_the_vocabulary_of_its_report(row):
    model = replace(PRESETS[row["model"].replace(" ", "-")], vocabulary=int(row["vocab_in_paper"]))
    assert model.embedding_parameters == int(row["embedding_params"])
    assert model.non_embedding_parameters == int(row["non_embedding_params"])


def test_every_preset_is_compared_with_something():
    named = {row["model"] for name in ("model_parameters.csv", "mpt_parameters.csv") for row in rows(name)}
    assert named == set(PRESETS)


def test_gpt_3_as_its_table_prints_it():
    """Brown et al., Table 2.1; the counts are rounded there, the largest upwards to the next billion."""
    printed = {"125M": 125e6, "350M": 350e6, "760M": 760e6, "1.3B": 1.3e9, "2.7B": 2.7e9, "6.7B": 6.7e9, "13B": 13e9}
    for name, count in printed.items():
        assert PRESETS[f"GPT-3-{name}"].parameters == pytest.approx(count, rel=0.02)
    assert PRESETS["GPT-3"].parameters == 174_604_259_328
    # The printed 24 heads of 128 at a width of 2048 would be a model of 1.5 billion.
    assert replace(PRESETS["GPT-3-1.3B"], heads=24, kv_heads=24).parameters == pytest.approx(1.5e9, rel=0.02)


def test_tensors_stand_in_the_order_of_registration():
    names = [tensor.name for tensor in opt(16, 1, 2, vocabulary=50, embedding_width=8, final_norm=False).tensors]
    assert names[:4] == ["embedding.weight", "positions.weight", "project_out.weight", "project_in.weight"]
    assert names[4] == "layers.0.attention.key.weight" and names[-1] == "layers.0.norm_2.bias"
    llama_names = [tensor.name for tensor in llama(16, 2, 4, 2, vocabulary=50).tensors]
    assert llama_names[0] == "embedding.weight" and llama_names[-2:] == ["final_norm.weight", "head.weight"]
    assert llama_names[1:10] == [
        f"layers.0.{part}.weight"
        for part in (
            *(f"attention.{name}" for name in ("query", "key", "value", "output")),
            *(f"mlp.{name}" for name in ("gate", "up", "down")),
            *("norm_1", "norm_2"),
        )
    ]
    shapes = [tensor.shape for tensor in gpt2(16, 1, 2, 7, 50).tensors]
    assert shapes[:6] == [(50, 16), (7, 16), (16,), (16,), (48, 16), (48,)]
    assert [t.shape for t in qwen3(16, 1, 4, 2, 3, 32, 50).layer_tensors][3:6] == [(16, 12), (3,), (3,)]


def test_units_are_the_root_and_the_layers():
    root, *layers = PRESETS["Llama-2-7B"].units
    assert (root.name, root.parameters) == ("root", 2 * 32000 * 4096 + 4096)
    assert [unit.name for unit in layers] == [f"layers.{i}" for i in range(32)]
    assert {unit.parameters for unit in layers} == {202_383_360}


@st.composite
def architectures(draw):
    kv_heads, groups, width = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 64))
    return Architecture(
        hidden=draw(st.integers(1, 512)),
        layers=draw(st.integers(1, 20)),
        heads=kv_heads * groups,
        kv_heads=kv_heads,
        head_dim=width,
        ffn=draw(st.none() | st.integers(1, 2048)),
        vocabulary=draw(st.integers(1, 5000)),
        tied_embeddings=draw(st.booleans()),
        gated_mlp=draw(st.booleans()),
        biases=draw(st.sampled_from(list(BIASES))),
        norm=draw(st.sampled_from(list(NORMS))),
        norms_per_layer=draw(st.integers(0, 4)),
        qk_norms=draw(st.sampled_from(QK_NORMS)),
        final_norm=draw(st.booleans()),
        learned_positions=draw(st.sampled_from([0, 1, 512])),
        embedding_width=draw(st.none() | st.integers(1, 64)),
        layout=draw(st.sampled_from(list(LAYOUTS))),
    )


@given(architectures())
def test_the_whole_is_the_sum_of_its_tensors_and_of_its_units(model):
    assert model.parameters == sum(math.prod(tensor.shape) for tensor in model.tensors)
    assert model.parameters == sum(unit.parameters for unit in model.units)
    assert len({tensor.name for tensor in model.tensors}) == len(model.tensors)
    assert model.layers * len(model.layer_tensors) + len(model.root_tensors) == len(model.tensors)


@given(architectures())
def test_what_a_change_adds(model):
    deeper = replace(model, layers=model.layers + 1)
    assert deeper.parameters - model.parameters == model.parameters_per_layer > 0
    untied, tied = replace(model, tied_embeddings=False), replace(model, tied_embeddings=True)
    assert untied.parameters - tied.parameters == model.vocabulary * (model.embedding_width or model.hidden)
    assert untied.non_embedding_parameters == tied.non_embedding_parameters


@given(architectures(), st.sampled_from(list(LAYOUTS)))
def test_the_layout_changes_the_order_alone(model, layout):
    other = replace(model, layout=layout)
    assert other.parameters == model.parameters and other.parameters_per_layer == model.parameters_per_layer


def test_what_is_left_out_is_as_in_llama():
    assert Llama(4096, 32, 32) == PRESETS["Llama-2-7B"]
    assert Architecture(8192, 80, 64).ffn == 22016
    assert Architecture(64, 2, 4, gated_mlp=False).ffn == 256
    assert Architecture(64, 2, 4, embedding_width=64) == Architecture(64, 2, 4)
    assert mpt(4096, 32, 32, 512) == replace(PRESETS["MPT-7b"], learned_positions=512)


def test_small_integers_of_numpy_do_not_overflow():
    sizes = np.array([4096, 32, 32, 32, 128, 11008, 32000], dtype=np.int16)
    assert Llama(*sizes).parameters == 6_738_415_616


SMALL = {"hidden": 64, "layers": 2, "heads": 4}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hidden": 0}, "hidden is 0; give a whole number from 1 to 1,000,000,000"),
        ({"hidden": 64.0}, "hidden is 64.0"),
        ({"hidden": math.nan}, "hidden is nan"),
        ({"layers": -1}, "layers is -1"),
        ({"layers": True}, "layers is True"),
        ({"layers": 10**400}, "layers is a number too large for a float"),
        ({"heads": "4"}, "heads is '4'"),
        ({"heads": 3}, "heads is 3, which does not divide hidden = 64"),
        ({"kv_heads": 3}, "kv_heads is 3, .* give a divisor of 4"),
        ({"kv_heads": 0}, "kv_heads is 0"),
        ({"embedding_width": 0}, "embedding_width is 0"),
        ({"head_dim": math.inf}, "head_dim is inf"),
        ({"norms_per_layer": 5}, "norms_per_layer is 5; give a whole number from 0 to 4"),
        ({"learned_positions": -2}, "learned_positions is -2"),
        ({"tied_embeddings": 1}, "tied_embeddings is 1"),
        ({"norm": "rmsnorm"}, "norm is 'rmsnorm', .* did you mean 'rms'"),
        ({"biases": []}, "biases is .*choose one of none, qkv, attention, all"),
        ({"layout": None}, "layout is None"),
    ],
)
def test_an_impossible_architecture_is_refused_in_one_sentence(change, says):
    with pytest.raises(ValueError, match=says) as refused:
        Architecture(**{**SMALL, **change})
    assert "\n" not in str(refused.value)


def test_a_bad_length_is_refused_by_the_families_too():
    with pytest.raises(ValueError, match="learned_positions is 'long'"):
        opt(64, 2, 4, positions="long")


def test_presets_are_a_mapping_that_knows_the_nearest_names():
    assert isinstance(PRESETS, Mapping) and len(PRESETS) == len(set(PRESETS)) == len(list(PRESETS.items()))
    assert "Llama-2-7B" in PRESETS and "Llama-2-8B" not in PRESETS and PRESETS.get("none") is None
    assert preset("llama-2-7b") is PRESETS["Llama-2-7B"] and PRESETS["OLMo-2-7B"] is PRESETS["OLMo-2-1124-7B"]
    with pytest.raises(KeyError) as refused:
        preset("Llama-2-8B")
    assert str(refused.value).startswith("model is 'Llama-2-8B', which is not known here; did you mean 'Llama-")
    for no_name in (7, None, ["Llama-2-7B"], "xyzzy"):
        with pytest.raises(UnknownModel, match=r"list\(PRESETS\)"):
            preset(no_name)


def test_it_shows_itself():
    model = PRESETS["Llama-3.2-1B"]
    for text in (str(model), model._repr_html_()):
        for number in ("1,235,814,400", "60,821,504", "262,668,288", "16 layers", "146"):
            assert number in text
    assert "also the output matrix" in str(model) and "also the output" not in str(PRESETS["Llama-2-7B"])


def test_a_hundred_thousand_look_ups_take_half_a_second_at_most():
    start = time.process_time()
    for _ in range(100_000):
        _ = PRESETS["Llama-3.1-405B"].parameters
    assert time.process_time() - start < 0.5


def test_importing_is_quick():
    code = "import time; t = time.perf_counter(); import utils.theory.models as _; print(time.perf_counter() - t)"
    took = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in "123"
    )
    assert took < 0.3
