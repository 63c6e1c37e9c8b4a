"""The breakdown of a GPU's memory: it adds up, it is ordered, it says what fits, and it is refused bad input."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.activations import RECOMPUTATIONS
from utils.theory.architecture import Architecture
from utils.theory.breakdown import Breakdown, max_micro_batch, max_sequence, training_memory
from utils.theory.memory import STRATEGIES, model_states
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.units import GB

LLAMA_7B, LLAMA_70B = PRESETS["Llama-2-7B"], PRESETS["Llama-2-70B"]
models = st.builds(
    Architecture,
    hidden=st.sampled_from([64, 260, 1024]),
    layers=st.integers(1, 5),
    heads=st.just(4),
    kv_heads=st.sampled_from([1, 4]),
    ffn=st.integers(1, 5000),
    vocabulary=st.integers(1, 50_000),
    gated_mlp=st.booleans(),
    tied_embeddings=st.booleans(),
    norm=st.sampled_from(["rms", "layer"]),
)
how = {
    "recomputation": st.sampled_from(RECOMPUTATIONS),
    "implementation": st.sampled_from(["paper", "torch", "transformers"]),
    "flash_attention": st.booleans(),
    "element_bytes": st.sampled_from([2, 4]),
}


@given(
    model=models,
    strategy=st.sampled_from(STRATEGIES),
    sequence=st.integers(1, 3000),
    micro_batch=st.integers(1, 4),
    recipe=st.sampled_from([None, *PRECISION_RECIPES]),
    **how,
)
def test_parts_add_up_and_none_is_negative(model, strategy, sequence, micro_batch, **more):
    shard_size = 4 if strategy == "hsdp" else None
    breakdown = training_memory(model, 8, strategy, sequence, micro_batch, shard_size=shard_size, **more)
    assert breakdown.total == breakdown.peak == sum(breakdown.parts.values())
    for moment in breakdown.moments:
        assert all(size >= 0 for size in moment.parts.values()), moment
        assert moment.total == sum(moment.parts.values()) <= breakdown.total
    assert 0 < breakdown.at_rest <= breakdown.total
    assert breakdown.fits(breakdown.total) and not breakdown.fits(breakdown.total - 1)


@given(model=models, strategy=st.sampled_from(STRATEGIES), sequence=st.integers(1, 3000), **how)
def test_a_larger_batch_never_takes_less(model, strategy, sequence, **more):
    more["shard_size"] = 2 if strategy == "hsdp" else None
    one, two = (training_memory(model, 8, strategy, sequence, b, **more) for b in (1, 2))
    assert two.total >= one.total and two.at_rest == one.at_rest


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_at_rest_are_the_model_states(strategy):
    shard_size = 8 if strategy == "hsdp" else None
    recipe = "fsdp2" if strategy in ("fsdp", "hsdp") else "zero-paper"
    breakdown = training_memory(LLAMA_7B, 64, strategy, 2048, shard_size=shard_size)
    counters = 0 if strategy.startswith("zero") else 4 * len(LLAMA_7B.tensors)
    assert breakdown.at_rest == model_states(LLAMA_7B.parameters, 64, strategy, shard_size, recipe).total + counters


def test_ddp_without_views_holds_one_more_copy_of_the_gradients():
    view, copy = (training_memory(LLAMA_7B, 8, "ddp", 512, gradient_as_bucket_view=v) for v in (True, False))
    assert copy.peak_moment.name == view.peak_moment.name == "optimizer step"
    assert copy.total - view.total == copy.parts["buffers"] == 2 * LLAMA_7B.parameters


def test_what_prefetch_costs():
    """One more block in bf16 while a block computes; without it the buffer of the block itself counts, when its
    parameters are cut out of it, which is traced in test_fsdp_step."""
    with_it, without = (training_memory(LLAMA_70B, 64, "fsdp", 2048, prefetch=p) for p in (True, False))
    ends = [next(m for m in each.moments if m.name == "backward, block 78, end") for each in (with_it, without)]
    assert ends[0].total - ends[1].total == 2 * LLAMA_70B.parameters_per_layer
    assert with_it.total == ends[0].total > without.total > ends[1].total
    assert without.peak_moment.name == "backward, block 78, gathered"


def test_llama_2_70b_on_64_gpus_of_80_gb():
    """Without recomputation not one sequence of 2048 tokens fits; with it 15, and the largest is the largest."""
    assert max_micro_batch(LLAMA_70B, 64, "fsdp", 2048, 80 * GB) == 0
    assert not training_memory(LLAMA_70B, 64, "fsdp", 2048).fits(80 * GB)
    for recomputation in RECOMPUTATIONS:
        longest = max_sequence(LLAMA_70B, 64, "fsdp", 80 * GB, recomputation=recomputation)
        fits = [training_memory(LLAMA_70B, 64, "fsdp", longest + n, 1, recomputation).fits(80 * GB) for n in (0, 1)]
        assert fits == [True, False]
    most = max_micro_batch(LLAMA_70B, 64, "fsdp", 2048, 80 * GB, recomputation="full")
    fits = [training_memory(LLAMA_70B, 64, "fsdp", 2048, most + n, "full").fits(80 * GB) for n in (0, 1)]
    assert fits == [True, False] and most == 15


def test_no_sequence_is_longer_than_the_learned_positions():
    gpt = PRESETS["GPT-2"]
    assert max_sequence(gpt, 8, "ddp", 80 * GB) == 1024
    memory = training_memory(gpt, 8, "ddp", 700, micro_batch=64).total
    assert max_sequence(gpt, 8, "ddp", memory, micro_batch=64) == 700


def test_what_is_sought_is_not_given():
    with pytest.raises(ValueError, match="micro_batch is 2, but it is what is sought here: leave it out"):
        max_micro_batch(LLAMA_7B, 8, "fsdp", 2048, 80 * GB, micro_batch=2)
    with pytest.raises(ValueError, match="sequence is 512, but it is what is sought here: leave it out"):
        max_sequence(LLAMA_7B, 8, "fsdp", 80 * GB, sequence=512)


def test_a_reserve_is_kept_free():
    breakdown = training_memory(LLAMA_7B, 8, "fsdp", 2048)
    assert breakdown.fits(breakdown.total / 0.9 + 1, reserve=0.1)
    assert not breakdown.fits(breakdown.total / 0.9 - 1, reserve=0.1)


def test_it_prints_a_table_whose_rows_add_up():
    breakdown = training_memory(LLAMA_70B, 64, "fsdp", 2048)
    lines = str(breakdown).splitlines()
    assert lines[0] == "fsdp on 64 GPUs, 68,976,648,192 parameters, 1 x 2,048 tokens"
    assert lines[1] == "at its largest: backward, block 78, end"
    rows = [re.fullmatch(r"(.{22}) +([\d,.]+) GB +([\d.]+)%", line) for line in lines[2:]]
    assert all(rows) and len({len(line) for line in lines[2:]}) == 1
    sizes = {row[1].strip(): float(row[2].replace(",", "")) for row in rows}
    total = sizes.pop("in all")
    assert sizes.pop("model states alone") == round(breakdown.at_rest / GB, 3)
    assert total == round(breakdown.total / GB, 3)
    assert sum(sizes.values()) == pytest.approx(total, abs=0.001 * len(sizes))


def test_it_draws_itself():
    bundle = training_memory(LLAMA_7B, 8, "zero1", 512)._repr_mimebundle_()
    assert {"text/html", "image/png", "text/plain"} <= set(bundle)
    assert "zero1 on 8 GPUs" in bundle["text/plain"]


BAD = [
    ({"model": 7e9}, "model is 7000000000.0; give an Architecture"),
    ({"world_size": 0}, "world_size is 0; "),
    ({"strategy": "zero-3"}, "strategy is 'zero-3', .* did you mean 'zero3'"),
    ({"shard_size": 2}, "shard_size is 2, but fsdp has no shard groups"),
    ({"recipe": "fp8"}, "recipe is 'fp8'"),
    ({"sequence": "2k"}, "sequence is '2k'"),
    ({"prefetch": 1}, "prefetch is 1; it is yes or no"),
    ({"reduced_bytes": 8}, "reduced_bytes is 8; give 2 or 4"),
    ({"bucket_elements": -5}, "bucket_elements is -5"),
    ({"gradient_as_bucket_view": "no"}, "gradient_as_bucket_view is 'no'"),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=[str(change) for change, _ in BAD])
def test_bad_input_is_refused_in_one_sentence(change, words):
    arguments = {"model": LLAMA_7B, "world_size": 8, "strategy": "fsdp", "sequence": 512, **change}
    with pytest.raises(ValueError, match=words) as error:
        training_memory(**arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.fits(0), "memory is 0; .* above 0"),
        (lambda b: b.fits("80 GB"), "memory is '80 GB'"),
        (lambda b: b.fits(80 * GB, 1), "reserve is 1; "),
        (lambda b: b.fits(80 * GB, -0.1), "reserve is -0.1; "),
        (lambda b: b.picture(float("nan")), "memory is nan"),
        (lambda _: max_sequence(LLAMA_7B, 8, "fsdp", 1e29), "memory is 1e\\+29, which holds any batch"),
    ],
)
def test_a_bad_memory_is_refused_in_one_sentence(call, words):
    breakdown = training_memory(LLAMA_7B, 8, "fsdp", 512)
    assert isinstance(breakdown, Breakdown)
    with pytest.raises(ValueError, match=words) as error:
        call(breakdown)
    assert "\n" not in str(error.value)


def test_only_pytorchs_adam_keeps_step_counters():
    """SGD has none, with momentum or without; bitsandbytes' 8-bit Adam counts in a plain number."""
    for recipe in PRECISION_RECIPES:
        rest = training_memory(LLAMA_7B, 8, "ddp", 128, recipe=recipe).at_rest
        counters = 0 if recipe in ("sgd", "sgd-momentum", "adam-8bit") else 4 * len(LLAMA_7B.tensors)
        assert rest == model_states(LLAMA_7B.parameters, 8, "ddp", recipe=recipe).total + counters


def test_at_rest_is_summed_and_not_subtracted():
    """On 1000 GPUs the shares are no whole bytes, and a difference of large sums lost their last digits."""
    gpt = PRESETS["GPT-2"]
    rest = training_memory(gpt, 1000, "zero3", 1024).at_rest
    assert rest == model_states(gpt.parameters, 1000, "zero3").total
