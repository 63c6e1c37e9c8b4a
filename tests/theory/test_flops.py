"""FLOPs and utilization against published tables."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from utils.theory.flops import (
    PEAK_FLOPS,
    critical_tokens_per_chip,
    flops_per_token,
    hfu,
    mfu,
    transformer_flops,
    utilization,
)

DATA = Path(__file__).parents[1] / "data"


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def architecture(row):
    return int(row["layers"]), int(row["hidden"]), int(row["vocabulary"]), int(row["sequence"])


@pytest.mark.parametrize("row", rows("korthikanti_end_to_end.csv"), ids=lambda row: row["model"])
def test_korthikanti_within_a_fifth_of_a_point(row):
    batch, gpus, seconds = int(row["batch"]), int(row["gpus"]), float(row["present_work_s"])
    for recomputation, column in (("none", "mfu_pct"), ("selective", "hfu_pct")):
        flops = transformer_flops(*architecture(row), batch, recomputation)
        assert abs(100 * utilization(flops, seconds, gpus, PEAK_FLOPS["A100"]) - float(row[column])) < 0.2


@pytest.mark.parametrize("row", rows("korthikanti_end_to_end.csv"), ids=lambda row: row["model"])
def test_the_papers_closed_forms(row):
    layers, h, v, s = architecture(row)
    b = int(row["batch"])
    for recomputation, law in (
        ("none", 72 * (1 + s / (6 * h) + v / (12 * h * layers))),
        ("selective", 72 * (1 + s / (3 * h) + v / (12 * h * layers))),
        ("full", 96 * (1 + s / (6 * h) + v / (16 * h * layers))),
    ):
        assert transformer_flops(layers, h, v, s, b, recomputation) == pytest.approx(law * b * layers * s * h * h)


def test_llm_foundry_within_a_seventh_of_a_point_in_every_row():
    """135 rows, whose last figures are rounded to 0.01 point: the largest miss is 0.01."""
    table = rows("llm_foundry_throughput.csv")
    assert len(table) == 135
    misses = []
    for row in table:
        layers, hidden, _, sequence = architecture(row)
        peak = PEAK_FLOPS[row["gpu"].split("_")[0].upper()] * (2 if row["precision"] == "amp_fp8" else 1)
        each = flops_per_token(int(row["parameters"]), layers, hidden, sequence)
        speed = float(row["tokens_per_s"]), int(row["gpus"]), peak
        recomputation = "full" if row["full_recomputation"] == "true" else "none"
        misses.append(100 * mfu(each, *speed) - float(row["mfu_pct"]))
        misses.append(100 * hfu(each, *speed, recomputation) - float(row["hfu_pct"]))
    assert max(map(abs, misses)) < 0.15
    assert max(map(abs, misses)) < 0.011, "the docstring says so"


def test_llm_foundrys_parameters_follow_from_the_shape():
    """MPT: 12 d^2 L + v d + s d, biases 9 d L, norms 2 d (2 L + 1), where s is the sequence of the run."""
    for row in rows("llm_foundry_throughput.csv"):
        layers, d, v, s = architecture(row)
        assert int(row["parameters"]) == 12 * d * d * layers + v * d + s * d + 9 * d * layers + 2 * d * (2 * layers + 1)


@pytest.mark.parametrize("row", rows("llama3_mfu.csv"), ids=lambda row: row["gpus"])
def test_llama_3_prints_whole_points(row):
    share = 100 * utilization(float(row["tflops_per_gpu"]) * 1e12, 1, 1, PEAK_FLOPS["H100"])
    assert abs(share - float(row["mfu_pct"])) < 0.5


@pytest.mark.parametrize("row", rows("critical_batch.csv"), ids=lambda row: row["case"])
def test_the_scaling_books_critical_batch(row):
    tokens = int(row["chips"]) * critical_tokens_per_chip(float(row["flops_per_s"]), float(row["bytes_per_s"]))
    assert abs(tokens - float(row["published_tokens"])) <= float(row["tolerance"])


def test_conventions_differ_by_embedding_and_causal_attention():
    shape = {"parameters": 8_030_261_248, "layers": 32, "hidden": 4096, "sequence": 8192}
    whole = flops_per_token(**shape)
    embedding = 128256 * 4096
    assert whole - flops_per_token(**shape, embedding_parameters=embedding) == 6 * embedding
    assert whole - flops_per_token(**shape, causal=True) == 6 * 32 * 4096 * 8192
    assert flops_per_token(np.int32(2**30), np.uint8(32), np.int16(4096), np.int16(8192)) == 6 * 2**30 + 12 * 2**30


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: flops_per_token(0, 1, 1, 1), "parameters is 0"),
        (lambda: flops_per_token(7e9, 32.0, 1, 1), "layers is 32.0"),
        (lambda: flops_per_token(7e9, 32, True, 1), "hidden is True"),
        (lambda: flops_per_token(7e9, 32, 1, 1, embedding_parameters=8e9), "give at most as many"),
        (lambda: flops_per_token(7e9, 32, 1, 1, causal="yes"), "causal is 'yes'"),
        (lambda: flops_per_token(7e9, 10**400, 1, 1), "(layers|flops_per_token) is .* of at most 1"),
        (lambda: transformer_flops(1, 1, 1, 1, 0), "sequences is 0"),
        (lambda: transformer_flops(1, 1, 1, 1, 1, "Full"), "did you mean 'full'"),
        (lambda: transformer_flops(1, 1, 1, 1, 1, None), "recomputation is None"),
        (lambda: utilization(1e15, math.nan, 8, 1e12), "seconds is nan"),
        (lambda: utilization(1e15, 1, 0, 1e12), "gpus is 0"),
        (lambda: mfu("1", 1, 8, 1e12), "flops_per_token is '1'"),
        (lambda: mfu(1e300, 1e300, 8, 1e12), "(layers|flops_per_token) is .* of at most 1"),
        (lambda: hfu(1e9, 1e3, 8, 1e12, "selective"), "recomputation is 'selective'"),
        (lambda: hfu(1e9, 1e3, 8, 1e12, ["full"]), r"recomputation is \['full'\]"),
        (lambda: critical_tokens_per_chip(1e12, 0), "bandwidth is 0"),
    ],
)
def test_wrong_arguments_are_one_sentence(call, says):
    with pytest.raises(ValueError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)
