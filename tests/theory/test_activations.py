"""Activations against the published formulas, and against what implementations were seen to keep."""

import csv
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.activations import RECOMPUTATIONS, activation_bytes, zero_activation_bytes
from utils.theory.architecture import Architecture
from utils.theory.kept import IMPLEMENTATIONS
from utils.theory.models import PRESETS
from utils.theory.units import GB

DATA = Path(__file__).parents[1] / "data"
GPT_3 = Architecture(12288, 96, 96, vocabulary=51200, gated_mlp=False, norm="layer", biases="all", layout="gpt-2")
LLAMA = PRESETS["Llama-2-7B"]


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def per_sbh(model, sequence, micro_batch=1, **more):
    """Exactly, as all sizes here are whole or halves."""
    kept = activation_bytes(model, sequence, micro_batch, **more)
    return Fraction(kept.per_layer) / (sequence * micro_batch * model.hidden)


@pytest.mark.parametrize("row", rows("activation_formulas_korthikanti.csv"), ids=lambda row: row["configuration"])
@pytest.mark.parametrize(("hidden", "heads", "sequence"), [(12288, 96, 2048), (6144, 64, 2048), (4096, 32, 512)])
def test_table_2_of_korthikanti(row, hidden, heads, sequence):
    model = Architecture(hidden, 4, heads, vocabulary=51200, gated_mlp=False, norm="layer")
    for t in (1, 2, 8) if row["tensor_parallel"] == "yes" else (1,):
        each = Fraction(row["whole"]) + Fraction(row["over_t"]) / t
        each += Fraction(row["scores_over_t"]) * heads * sequence / hidden / t
        for b in (1, 4):
            more = {"recomputation": row["recomputation"], "flash_attention": False, "tensor_parallel": t}
            assert per_sbh(model, sequence, b, **more) == each


def test_sequence_parallelism_divides_everything():
    each = per_sbh(GPT_3, 2048, flash_attention=False, tensor_parallel=8, sequence_parallel=True)
    assert each == Fraction(34 + 80, 8)
    kept = activation_bytes(GPT_3, 2048, recomputation="selective", tensor_parallel=8, sequence_parallel=True)
    assert Fraction(kept.per_layer) == Fraction(34, 8) * 2048 * 12288


def test_the_pieces_of_34():
    terms = dict(activation_bytes(GPT_3, 2048).terms)
    sbh = 2048 * 12288
    norms = terms["norm 1"] + terms["norm 2"]
    mlp = terms["MLP input"] + terms["inside the MLP"] + terms["MLP dropout mask"]
    assert (norms / sbh, mlp / sbh, (sum(terms.values()) - norms - mlp) / sbh) == (4, 19, 11)


def test_gpt_3_saves_seventy_percent_by_selective_recomputation():
    whole, selective = (per_sbh(GPT_3, 2048, flash_attention=False, recomputation=r) for r in ("none", "selective"))
    assert (whole - selective, round(float(1 - selective / whole), 2)) == (80, 0.7)
    assert per_sbh(GPT_3, 2048) == selective  # FlashAttention keeps no s² terms either


@pytest.mark.parametrize("ffn", [1024, 4096, 16384, 11008])
def test_other_widths_of_the_mlp(ffn):
    """Plain: 19 becomes 3 + 4 f/h. Gated: four tensors of that width and no dropout, 2 + 8 f/h."""
    plain = Architecture(4096, 2, 32, ffn=ffn, gated_mlp=False)
    gated = Architecture(4096, 2, 32, ffn=ffn)
    assert per_sbh(plain, 512) == 4 + 11 + 3 + Fraction(4 * ffn, 4096)
    assert per_sbh(gated, 512) == 4 + 10 + 2 + Fraction(8 * ffn, 4096)


def test_grouped_queries_keep_narrower_keys_and_values():
    every, grouped = Architecture(4096, 2, 32), Architecture(4096, 2, 32, kv_heads=8)
    assert per_sbh(every, 512) - per_sbh(grouped, 512) == 4 * Fraction(3, 4)
    more = {"implementation": "transformers"}
    assert per_sbh(every, 512, **more) == per_sbh(grouped, 512, **more)  # it repeats them


@pytest.mark.parametrize("row", rows("activation_copies_per_layer.csv"), ids=lambda row: row["model"])
def test_what_transformers_keeps(row):
    """Traced: exactly. Published, for other releases, in whole copies with the layer's output: less than one below."""
    sizes = {field: int(row[field]) for field in ("hidden", "heads", "kv_heads", "head_dim", "ffn")}
    model = Architecture(**sizes, layers=1, qk_norms=row["qk_norms"])
    copies = float(per_sbh(model, 256, implementation="transformers")) / 2
    assert copies == pytest.approx(float(row["traced_copies"]), rel=1e-12)
    with_output = copies + 1
    assert math.floor(with_output) == int(row["published_copies"])
    assert with_output / int(row["published_copies"]) < 1.03


@pytest.mark.parametrize("row", rows("zero_residual_states.csv"), ids=lambda row: row["quantity"])
def test_residual_states_of_the_zero_paper(row):
    """ "About" and "around" are within an eighth; the model states are a lower bound in the paper, and equal here."""
    published = float(row["published_GB"]) * GB
    if row["parameters"]:
        each = {"fp16 weights": 2, "model states": 16, "fp32 buffer": 4}[row["quantity"]]
        assert each * float(row["parameters"]) == published
        return
    sizes = [int(row[field]) for field in ("hidden", "layers", "sequence", "batch")]
    assert zero_activation_bytes(*sizes, checkpointing="checkpointing" in row["quantity"]) == pytest.approx(
        published, rel=1 / 8
    )


def test_logits_of_a_large_vocabulary():
    """fp32 logits and their gradient, 8 b s V bytes: 8.4 GB for Llama 3 8B and one sequence of 8192 tokens."""
    kept = activation_bytes(PRESETS["Llama-3-8B"], 8192)
    assert kept.logits + kept.at_loss == 8 * 8192 * 128256
    assert round((kept.logits + kept.at_loss) / GB, 1) == 8.4
    half = activation_bytes(PRESETS["Llama-3-8B"], 8192, logit_bytes=2)
    assert 2 * half.logits == kept.logits
    assert activation_bytes(PRESETS["Llama-3-8B"], 8192, logit_bytes=0).logits == 0


def test_full_recomputation_keeps_layer_inputs_and_brings_one_layer_back():
    whole, full = (activation_bytes(GPT_3, 2048, recomputation=r) for r in ("none", "full"))
    layer_input = 2 * 2048 * 12288
    assert full.per_layer == layer_input
    assert full.total == 96 * layer_input + (whole.per_layer - layer_input) + whole.head + whole.logits
    assert whole.total == 96 * whole.per_layer + whole.head + whole.logits and whole.recomputed == 0


sizes = st.builds(
    Architecture,
    hidden=st.sampled_from([256, 1024, 4096]),
    layers=st.integers(1, 100),
    heads=st.sampled_from([8, 16]),
    kv_heads=st.sampled_from([1, 2, 8]),
    ffn=st.integers(1, 40_000),
    vocabulary=st.integers(1, 300_000),
    gated_mlp=st.booleans(),
    norm=st.sampled_from(["rms", "layer"]),
    norms_per_layer=st.sampled_from([2, 4]),
    qk_norms=st.sampled_from(["none", "per head", "full width"]),
)
how = {"implementation": st.sampled_from(list(IMPLEMENTATIONS)), "element_bytes": st.sampled_from([2, 4])}


@given(model=sizes, sequence=st.integers(3, 100_000), micro_batch=st.integers(1, 16), **how)
def test_less_is_kept_the_more_is_recomputed_and_it_grows_with_the_batch(model, sequence, micro_batch, **more):
    """From 3 tokens on: FlashAttention's statistics, 4 bytes, are more than a row of two 16-bit entries."""
    none, selective, full = (
        activation_bytes(model, sequence, micro_batch, r, flash_attention=False, **more) for r in RECOMPUTATIONS
    )
    assert none.per_layer > selective.per_layer > full.per_layer > 0
    flash = activation_bytes(model, sequence, micro_batch, **more)
    assert flash.per_layer == selective.per_layer
    twice = activation_bytes(model, sequence, 2 * micro_batch, flash_attention=False, **more)
    assert (twice.per_layer, twice.logits) == (2 * none.per_layer, 2 * none.logits)
    assert sum(size for _, size in none.terms) == none.per_layer
    longer = activation_bytes(model, 2 * sequence, micro_batch, flash_attention=False, **more)
    assert longer.per_layer > 2 * none.per_layer


@given(model=sizes, sequence=st.integers(1, 10_000), t=st.sampled_from([2, 4, 8]), **how)
def test_tensor_parallelism_divides_at_most(model, sequence, t, **more):
    model = replace(model, kv_heads=model.heads)
    alone, split, everything = (
        activation_bytes(model, sequence, tensor_parallel=n, sequence_parallel=s, **more).per_layer
        for n, s in ((1, False), (t, False), (t, True))
    )
    assert everything == pytest.approx(alone / t, rel=1e-12)
    assert everything < split < alone


def test_with_sequence_parallelism_full_recomputation_divides_the_layers_input_too():
    """Korthikanti et al., section 4.2: 2 s b h / t."""
    model, tokens = PRESETS["GPT-3-175B"], 2048
    alone, split = (
        activation_bytes(model, tokens, 1, "full", flash_attention=False, tensor_parallel=t, sequence_parallel=True)
        for t in (1, 8)
    )
    assert (alone.per_layer, split.per_layer) == (2 * tokens * 12288, 2 * tokens * 12288 / 8)
    assert split.per_layer + split.recomputed == pytest.approx((alone.per_layer + alone.recomputed) / 8)


def test_heads_of_keys_are_shared_out_too():
    with pytest.raises(ValueError, match=r"tensor_parallel is 16; .* that divides the heads of keys = 8"):
        activation_bytes(PRESETS["Llama-3-8B"], 2048, tensor_parallel=16)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "Llama-2-7B"}, "model is 'Llama-2-7B'; give an Architecture"),
        ({"sequence": 0}, "sequence is 0; .* whole number of at least 1"),
        ({"sequence": 2.5}, "sequence is 2.5; "),
        ({"micro_batch": True}, "micro_batch is True; "),
        ({"recomputation": "selectiv"}, "recomputation is 'selectiv', .* did you mean 'selective'"),
        ({"recomputation": None}, "recomputation is None, .* choose one of none, selective, full"),
        ({"flash_attention": 1}, "flash_attention is 1; it is yes or no"),
        ({"implementation": "jax"}, "implementation is 'jax', "),
        ({"element_bytes": 3}, "element_bytes is 3; give 2 or 4"),
        ({"logit_bytes": math.nan}, "logit_bytes is nan; give one of 0, 2, 4"),
        ({"tensor_parallel": 3}, "tensor_parallel is 3; .* that divides the heads = 32"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, words):
    with pytest.raises(ValueError, match=words) as error:
        activation_bytes(**{"model": LLAMA, "sequence": 128, **change})
    assert "\n" not in str(error.value)
