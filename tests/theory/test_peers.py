"""Other people's calculators: what ours print for them is what theirs print."""

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest

from utils.theory.architecture import Architecture
from utils.theory.explain import ROUNDING, TERMS, Estimate, explain
from utils.theory.memory import STRATEGIES, model_states
from utils.theory.peers import (
    STAGES,
    accelerate,
    deepspeed_zero2,
    deepspeed_zero3,
    eleuther,
    job_estimates,
    megatron,
    own_estimate,
)
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.units import GB, GiB

DATA = Path(__file__).parents[1] / "data"
MODELS = {
    "OPT-1.3B": Architecture(
        2048, 24, 32, ffn=8192, vocabulary=50272, tied_embeddings=True, gated_mlp=False, biases="all", norm="layer",
        learned_positions=2050,
    ),
    "Llama-2-7B": Architecture(4096, 32, 32, ffn=11008),
    "Llama-2-70B": Architecture(8192, 80, 64, kv_heads=8, ffn=28672),
}  # fmt: skip
LLAMA = MODELS["Llama-2-7B"]
TOTAL = "Per-GPU Memory Required for Training"


def rows(name, peer=""):
    with (DATA / f"{name}.csv").open() as file:
        return [row for row in csv.DictReader(file) if peer in row.get("peer", "")]


def options(row):
    return {name: value == "True" for name, value in (pair.split("=") for pair in row["variant"].split(","))}


@pytest.mark.parametrize("row", rows("peers_outputs", "deepspeed"), ids=lambda r: f"{r['case']} {r['variant']}")
def test_deepspeed_to_the_byte(row):
    parameters, per_node, nodes = (int(row[name]) for name in ("params", "gpus_per_node", "nodes"))
    if "zero2" in row["peer"]:
        found = deepspeed_zero2(parameters, per_node, nodes, **options(row), before_june_2024="before" in row["peer"])
    else:
        largest = int(row["note"].removeprefix("largest_layer_params="))
        assert MODELS[row["model"]].largest_module_parameters == largest
        found = deepspeed_zero3(parameters, largest, per_node, nodes, **options(row))
    assert (found.total, found.cpu) == (int(row["gpu_bytes"]), int(row["cpu_bytes_per_node"]))


@pytest.mark.parametrize("row", rows("deepspeed_doc_examples"), ids=lambda r: f"{r['estimator']} {r['options']}")
def test_deepspeeds_documentation(row):
    """One printed example is older than the code: the code prints another number, and the old rule prints this one."""
    set_to = dict(pair.split("=") for pair in row["options"].split())
    per_node, offload = int(row["gpus"]) // int(row["nodes"]), set_to["offload_optimizer"] == "cpu"
    if row["estimator"] == "estimate_zero2":
        found = deepspeed_zero2(2851e6, per_node, cpu_offload=offload)
        old = deepspeed_zero2(2851e6, per_node, cpu_offload=offload, before_june_2024=True)
    else:
        params = set_to["offload_param"] == "cpu"
        old = found = deepspeed_zero3(2851e6, 32e6, per_node, 1, offload, params, set_to["zero_init"] == "1")
    assert old.printed == {"per CPU": f"{row['published_cpu_GB']}GB", "per GPU": f"{row['published_gpu_GB']}GB"}
    assert (found.printed == old.printed) == (row["agrees_with_code"] == "true")
    if found.printed != old.printed:
        assert found.printed["per GPU"] == "11.28GB"


@pytest.mark.parametrize("row", rows("peers_printed"), ids=lambda r: f"{r['model']} {r['gpus']} {r['options']}")
def test_deepspeeds_output_printed_elsewhere(row):
    set_to = dict(pair.split("=") for pair in row["options"].split())
    parameters, largest, gpus = (int(row[name]) for name in ("parameters", "largest_layer", "gpus"))
    offload = set_to["offload_optimizer"] == "cpu"
    if row["calculator"] == "DeepSpeed ZeRO-2":
        found = deepspeed_zero2(parameters, gpus, 1, offload)
    else:
        params = set_to["offload_param"] == "cpu"
        found = deepspeed_zero3(parameters, largest, gpus, 1, offload, params, set_to["zero_init"] == "1")
    assert found.printed["per GPU"] == row["printed_gpu"]
    assert row["printed_cpu"] in ("", found.printed["per CPU"])


def test_megatrons_output_in_training_logs():
    """GPT-2 XL on one GPU, and Llama-2-7B on 8 with 4 pipeline ranks: lines of two public training logs.

    The second is from core r0.10, which counts a bias for each norm, also for RMSNorm.
    """
    gpt = megatron(1600, 48, 25, 6400, 50304)
    llama = megatron(4096, 32, 32, 11008, 32000, 2, True, swiglu=True, untied=True, pipeline_parallel=4)
    assert f"{gpt.parameters / 1e9:.4f}" == "1.5554" and gpt.printed["weight and optimizer"] == "26699.47 MB"
    assert f"{llama.parameters / 1e9:.4f}" == "1.7502" and llama.printed["weight and optimizer"] == "20029.52 MB"


@pytest.mark.parametrize("row", rows("peers_outputs", "Eleuther"), ids=lambda r: f"{r['case']} {r['zero_stage']}")
def test_eleuther_to_the_printed_digit(row):
    model = MODELS[row["model"]]
    found = eleuther(
        model.hidden, model.layers, model.heads, model.vocabulary, int(row["seq"]), int(row["micro_batch"]),
        int(row["gpus"]), int(row["zero_stage"]), row["variant"].endswith("True"), model.ffn / model.hidden,
        3 if model.gated_mlp else 2, model.kv_heads / model.heads,
    )  # fmt: skip
    parts = {"act": "Activation", "model": "Model", "grad": "Gradient", "opt": "Optimizer", "comm": "Communication"}
    for short, size in re.findall(r"(act|model|grad|opt|comm)=([\d.]+)", row["note"]):
        assert found.printed[f"Per-GPU {parts[short]} Memory"] == f"{float(size):.2f} GiB"
    assert found.printed[TOTAL] == f"{float(row['gpu_GiB']):.2f} GiB"
    assert f"params={found.printed['Number of Parameters']}; " in row["note"]


@pytest.mark.parametrize("row", rows("peers_outputs", "Megatron"), ids=lambda r: f"{r['case']} {r['zero_stage']}")
def test_megatron_to_the_byte(row):
    model, found = MODELS[row["model"]], {}
    for with_sp in (True, False):
        found[with_sp] = megatron(
            model.hidden, model.layers, model.heads, model.ffn, model.vocabulary, int(row["gpus"]),
            row["variant"].endswith("True"), model.kv_heads, None, model.gated_mlp, model.norm == "rms",
            not model.tied_embeddings, int(row["seq"]), int(row["micro_batch"]), with_sp,
        )  # fmt: skip
        assert found[with_sp].total - found[with_sp]["activations"] == int(row["gpu_bytes"])
    sizes = re.findall(r"formula=([\d.]+) GiB", row["note"])
    assert [f"{each['activations'] / GiB:.3f}" for each in found.values()] == sizes


@pytest.mark.parametrize("row", rows("peers_outputs", "accelerate"), ids=lambda r: f"{r['case']} {r['variant']}")
def test_accelerate_to_the_byte(row):
    assert accelerate(int(row["params"]), dtype=row["variant"]).total == int(row["gpu_bytes"])


def test_accelerates_documentation():
    """bert-base-cased: its parameters and the largest layer (a vocabulary of 28,996 by 768, positions apart)."""
    for row in rows("accelerate_doc_examples"):
        if row["model"] == "bert-base-cased":
            found = accelerate(108_310_272, 28_996 * 768, row["dtype"], buffer_bytes=8192).printed
            assert (found["Largest Layer"], found["Total Size"]) == (row["largest_layer"], row["total"])
            assert found["Training using Adam"] == row["training_adam"]
    assert accelerate(108_310_272, dtype="int8").printed["Training using Adam"] == "N/A"


def test_megatron_splits_over_tensor_and_pipeline_ranks():
    """By hand: one block of two layers, width 4, no gating; the first of two pipeline ranks holds half the blocks."""
    whole = megatron(4, 2, 2, 16, 10, rms_norm=True)
    block = 2 * (2 * 4 * (16 + 1) + 4 * 4 * 4) + 4
    assert whole["weights"] == 2 * (block + 40)
    split = megatron(4, 2, 2, 16, 10, rms_norm=True, pipeline_parallel=2, tensor_parallel=2)
    assert split["weights"] == round(2 * (block / 2 + 40) / 2)
    fewer = megatron(4, 2, 2, 16, 10, pipeline_parallel=4, microbatches=1)["activations"]
    assert fewer == pytest.approx(megatron(4, 2, 2, 16, 10, pipeline_parallel=4)["activations"] / 4, abs=1)
    interleaved = megatron(4, 2, 2, 16, 10, pipeline_parallel=4, virtual_pipeline=2)["activations"]
    assert interleaved == pytest.approx(megatron(4, 2, 2, 16, 10, pipeline_parallel=4)["activations"] * 1.375, abs=1)


def test_eleuthers_faults_are_reproduced_and_named():
    plain, split = eleuther(zero_stage=3, num_gpus=8), eleuther(zero_stage=3, num_gpus=8, tensor_parallel=2)
    assert split["weights"] == pytest.approx(plain["weights"] / 2, abs=1)  # 8 ranks, and 2 of those 8 once more
    assert any("once more by all GPUs" in quirk for quirk in split.quirks)
    assert eleuther(tensor_parallel=2, num_gpus=8)["fp32 gradients"] == eleuther(num_gpus=8)["fp32 gradients"]
    assert eleuther(num_gpus=1)["buckets"] == 0 and eleuther(num_gpus=2)["buckets"] == 10**9
    assert eleuther(tensor_parallel=2, partition_activations=True)["activations"] == eleuther()["activations"] // 2
    assert eleuther(misc_gib=5).total - eleuther().total == 5 * GiB
    assert eleuther(mixed_precision=False)["weights"] == 2 * eleuther()["weights"]


def test_our_own_estimate_is_model_states():
    for strategy in STRATEGIES:
        for name, recipe in PRECISION_RECIPES.items():
            shard_size = 4 if strategy == "hsdp" else None
            states = model_states(LLAMA.parameters, 8, strategy, shard_size, name)
            own = own_estimate(LLAMA.parameters, 8, strategy, name, shard_size, activations=3 * GB)
            assert own.total == round(states.total) + 3 * GB
            assert own["16-bit gradients"] + own["fp32 gradients"] == pytest.approx(states.gradients, abs=1)
            assert all(t.shared_by in (1, 4, 8) for t in own.terms) and own["activations"] == 3 * GB
            assert recipe.total * LLAMA.parameters >= own.total - own["activations"]


def test_differences_of_terms_add_up_to_that_of_the_totals():
    for model in MODELS.values():
        for stage in range(4):
            for world_size in (1, 3, 8, 60, 1024):
                found = job_estimates(model, world_size, stage, sequence=1000, micro_batch=3, activations=12345678.9)
                assert set(found) == {name for name, stages in STAGES.items() if stage in stages}
                for a in found.values():
                    for b in found.values():
                        why = explain(a, b)
                        assert sum(term.size for term in why.terms) == why.difference == a.total - b.total
                        assert all(bool(term.why) == (term.a != term.b) for term in why.terms)
                        assert sum(term.a for term in why.terms) == a.total
                assert all(abs(each[ROUNDING]) <= len(TERMS) for each in found.values())


def test_the_explanation_says_why():
    found = job_estimates(LLAMA, 8, 2, sequence=4096)
    why = {term.name: term for term in explain(found["DeepSpeed"], found["this suite"]).terms}
    assert {name for name, term in why.items() if term.size} == {"fp32 gradients"}
    assert why["fp32 gradients"].why == "only DeepSpeed ZeRO-2 counts it: 4 B per parameter, shared among 8"
    text = str(explain(found["EleutherAI"], found["this suite"]))
    assert "6,755,983,360 parameters against 6,738,415,616" in text
    assert "only EleutherAI ZeRO-2 counts 34 bytes per token, layer and unit of width, and the attention scores" in text
    assert "units: a writes GiB for 1,073,741,824 bytes, b GB for 1,000,000,000: the printed numbers are 123.10" in text
    older = explain(
        deepspeed_zero2(1e9, 8, cpu_offload=False, before_june_2024=True), deepspeed_zero2(1e9, 8, 1, False)
    )
    assert [term.why for term in older.terms if term.size] == ["whole on each GPU against shared among 8"]


def test_quirks_and_units_are_said():
    assert "gradients are there twice" in str(deepspeed_zero2(7e9, 8, cpu_offload=False))
    assert "the main memory of one node grows with the GPUs of all nodes" in deepspeed_zero2(7e9, 8, 2).quirks
    assert accelerate(1000, dtype="float16")["weights"] == 0
    assert any("not their sum" in quirk for quirk in accelerate(1000, dtype="float16").quirks)
    with pytest.raises(ValueError, match="term is 'weight', which is not known here; did you mean 'weights'"):
        _ = accelerate(1000)["weight"]


@pytest.mark.parametrize("bad", [0, -1, True, "8", math.nan, math.inf, None, 2.5])
def test_bad_numbers_are_refused_in_a_sentence(bad):
    calls = [
        lambda: deepspeed_zero2(7e9, bad),
        lambda: deepspeed_zero3(7e9, 1e8, nodes=bad),
        lambda: eleuther(hidden=bad),
        lambda: megatron(4, bad, 2, 16, 10),
        lambda: job_estimates(LLAMA, bad, 2),
    ]
    if bad != 2.5:
        calls += [lambda: deepspeed_zero2(bad), lambda: accelerate(bad), lambda: eleuther(kv_ratio=bad)]
    for call in calls:
        with pytest.raises(ValueError, match=r"^\w+ is .*[:;] give a (finite|whole) number") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_bad_names_stages_and_estimates_are_refused():
    for stage in (4, -1, True, "2"):
        with pytest.raises(ValueError, match="stage is"):
            job_estimates(LLAMA, 8, stage)
        with pytest.raises(ValueError, match="zero_stage is"):
            eleuther(zero_stage=stage)
    with pytest.raises(ValueError, match="dtype is 'fp16', which is not known here; "):
        accelerate(1000, dtype="fp16")
    with pytest.raises(ValueError, match="b is 3; give an Estimate"):
        explain(accelerate(1000), 3)


def test_numpys_numbers_count_and_huge_ones_do_not_overflow():
    assert deepspeed_zero2(np.int32(2**30), np.int64(8)).total == 2**31
    assert isinstance(eleuther(hidden=np.int32(8192)).total, int)
    assert deepspeed_zero3(10**15, 10**12, 8).total == 4 * 10**12
    assert isinstance(deepspeed_zero2(10**15), Estimate)
