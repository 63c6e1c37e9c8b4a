"""The dry run: traced bytes against the laws and earlier traces, the order of a step, and what the caller notices."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import torch

from utils.runtime.dry_run import DryRunFailed, dry_run
from utils.runtime.dry_run.buildable import arrangement
from utils.runtime.dry_run.compare import padded_parameters
from utils.runtime.dry_run.model import Decoder
from utils.theory.allocations import fsdp2_shard
from utils.theory.architecture import Architecture
from utils.theory.memory import model_states
from utils.theory.models import PRESETS
from utils.theory.units import GB

pytestmark = pytest.mark.rest  # each trace is a process of its own that builds a model

DATA = Path(__file__).parents[1] / "data"
SIZES = ("hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocabulary")
TINY = Architecture(128, 3, 4, vocabulary=300, ffn=512)
# Rows that take seconds, of every kind: fp32, padded shards, recomputation, the first block's gather.
QUICK = {"traced odd-8-2-128-full", "traced gqa-8-4-512-full", "traced two-4-2-64-none", "traced one-4-2-512-none"}
PARTS = {
    "sharded": "weights",
    "gathered": "gathered",
    "gradients": "gradients",
    "optimizer": "optimizer",
    "buffers": "buffers",
}


def rows():
    """One parameter a row; those that take longer are `long`."""
    found = []
    with (DATA / "fsdp2_mem_tracker_runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            name = "-".join(row[key] for key in ("name", "world_size", "element_bytes", "sequence", "recomputation"))
            found.append(pytest.param(row, id=name, marks=[] if name in QUICK else pytest.mark.long))
    return found


@cache
def traced(model, world_size, **more):
    return dry_run(model, world_size, **more)


def shares(run, where):
    return {(row.what, row.unit): row.share for row in run.table if row.where == where}


@pytest.mark.parametrize("row", rows())
def test_earlier_traces_come_again_to_the_byte(row):
    """Two rows were traced with another loss loop: there the loss, with a copy of the logits more, is the peak."""
    run = dry_run(
        Architecture(**{size: int(row[size]) for size in SIZES}),
        int(row["world_size"]),
        recompute=row["recomputation"] == "full",
        batch=int(row["micro_batch"]),
        sequence=int(row["sequence"]),
        mixed_precision=row["element_bytes"] == "2",
    )
    if row["name"] == "Llama-2-7B":
        assert run.peak.label == "loss, backward"
        assert int(row["total"]) < run.total <= 1.013 * int(row["total"])
        return
    top = run.peak.largest
    assert {column: getattr(top, part) for column, part in PARTS.items()} == {each: int(row[each]) for each in PARTS}
    assert run.total == int(row["total"])


def check_against_the_laws(run):
    """States and collectives exactly, gathered parameters and buffers within 1%, the whole within 5%."""
    assert set(shares(run, "optimizer step").values()) == {0}
    assert set(shares(run, "collectives").values()) == {0}
    peak = {what: share for (what, _), share in shares(run, "peak").items()}
    assert abs(peak["gathered parameters"]) <= 0.01 and abs(peak["communication buffers"]) <= 0.01
    assert abs(peak["in all"]) <= 0.05


@pytest.mark.parametrize(
    ("model", "world_size", "more"),
    [
        ("GPT-2", 8, {"sequence": 1024}),
        (replace(PRESETS["Qwen2.5-0.5B"], layers=4), 48, {"recompute": True, "sequence": 700}),
        (TINY, 1024, {"strategy": "hsdp", "shard_size": 8, "batch": 3, "sequence": 50}),
    ],
)
def test_other_models_ranks_and_sequences_obey_the_laws(model, world_size, more):
    check_against_the_laws(traced(model, world_size, **more))


@pytest.mark.long
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "name",
    ["Qwen3-0.6B", "Gemma-2B", "Gemma-2-2B", "OLMo-1B", "OLMo-2-0425-1B", "GPT-2-xl", "OPT-350M", "MPT-7b-released",
     "Llama-3.2-1B", "Mistral-7B-v0.1", "GPT-3-175B", "Llama-3.1-405B"],
)  # fmt: skip
def test_each_family_obeys_the_laws(name, recompute):
    check_against_the_laws(dry_run(replace(PRESETS[name], layers=5), 24, recompute=recompute, sequence=1000))


@pytest.mark.long
@pytest.mark.parametrize("recompute", [False, True])
def test_parallel_branches_differ_in_the_place_of_the_peak(recompute):
    """GPT-NeoX adds attention and MLP side by side, which the law of memory does not know: the whole is close."""
    run = dry_run(replace(PRESETS["Pythia-1B"], layers=5), 8, recompute=recompute, sequence=1000)
    assert set(shares(run, "optimizer step").values()) | set(shares(run, "collectives").values()) == {0}
    assert abs(shares(run, "peak")["in all", "bytes"]) <= 0.05


@pytest.mark.long
@pytest.mark.parametrize(("ranks", "states"), [(64, 17.24), (8, 137.95)])
def test_llama_2_70b(ranks, states):
    """16 bytes per parameter, shared out; a step of 2048 tokens fits 80 GB on 64 ranks with recomputation alone."""
    for recompute in (False, True):
        run = dry_run("Llama-2-70B", ranks, recompute=recompute)
        check_against_the_laws(run)
        exact = model_states(68_976_648_192, ranks, "fsdp", recipe="fsdp2")
        step = run.states
        assert (step.weights, step.gradients) == (exact.weights, exact.gradients)
        assert step.optimizer == exact.optimizer + run.step_counters and run.step_counters == 4 * 723
        assert round(run.state_bytes / GB, 2) == states
        assert run.fits(80 * GB) is (ranks == 64 and recompute)
        assert run.resident <= 2 * GB


@pytest.mark.parametrize("name", [*PRESETS])
def test_every_preset_is_built_tensor_by_tensor(name):
    model = replace(PRESETS[name], layers=1)
    with torch.device("meta"):
        built = [(each, tuple(tensor.shape)) for each, tensor in Decoder(model).named_parameters()]
    assert built == [tuple(tensor) for tensor in model.tensors]


def test_the_presets_layers_are_of_five_arrangements():
    found = {arrangement(model) for model in PRESETS.values()}
    assert found == {"before", "after", "around", "on the sum", "side by side"}


@pytest.mark.parametrize("norms", [0, 2, 4])
def test_a_layer_keeps_the_shape_of_its_input(norms):
    with torch.device("meta"):
        decoder = Decoder(replace(TINY, norms_per_layer=norms), recompute=True)
        assert decoder(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 5, 300)


def test_the_order_of_a_step_is_the_lifecycle():
    """Gather, compute, free, layer by layer; then gather, compute, reduce, in reverse; shards of gradients grow."""
    run = traced(TINY, 8, sequence=64)
    layers = [(event.phase, event.unit, event.part) for event in run.events if event.unit.startswith("layers")]
    forward = [("forward", f"layers.{i}", part) for i in range(3) for part in ("gather", "compute", "free")]
    backward = [("backward", f"layers.{i}", part) for i in (2, 1, 0) for part in ("gather", "compute", "reduce")]
    assert layers == forward + backward
    phases = [event.phase for event in run.events]
    assert list(dict.fromkeys(phases)) == ["forward", "loss", "backward", "optimizer step"]
    root, layer = (2 * 8 * fsdp2_shard(tensors, 8) for tensors in (TINY.root_tensors, TINY.layer_tensors))
    for event in run.events:
        if event.phase == "forward" and event.unit.startswith("layers"):
            assert event.last.gathered == root + (0 if event.part == "free" else layer)
    grown = [event.last.gradients for event in run.events if event.phase == "backward"]
    assert all(before <= after for before, after in pairwise(grown))
    assert grown[-1] == 4 * padded_parameters(TINY, 8) // 8
    assert run.events[-1].last.gradients == 0


def test_recomputation_moves_activations_into_the_backward_pass():
    """One layer's input stays of each; the rest of a layer comes back as work, and is gone before the next."""
    none, full = traced(TINY, 8, sequence=64), traced(TINY, 8, sequence=64, recompute=True)
    layer_input = 64 * 128 * 2
    (kept,) = [each.last.activations for each in full.events if each.label == "forward, layers.2, free"]
    (before,) = [each.last.activations for each in full.events if each.label == "forward, layers.1, free"]
    assert kept - before == layer_input
    (whole,) = [each.last.activations for each in none.events if each.label == "forward, layers.2, free"]
    assert whole > 3 * kept
    assert full.calls == none.calls  # no unit is gathered a third time


def test_a_wrong_prediction_shows_in_the_table():
    run, other = traced(TINY, 8, sequence=64), traced(TINY, 8, sequence=64, recompute=True)
    assert set(shares(run, "peak").values()) == {0}
    mixed = replace(run, predicted=other.predicted, step_counters=other.step_counters + 4)
    assert shares(mixed, "peak")["in all", "bytes"] > 0.01
    assert shares(mixed, "optimizer step")["Adam's step counters", "bytes"] > 0
    missing = replace(run, calls=run.calls[1:])
    assert any(share < 0 for share in shares(missing, "collectives").values())


def test_it_says_the_same_on_every_run():
    first, second = traced(TINY, 8, sequence=64), dry_run(TINY, 8, sequence=64)
    assert (str(first), repr(first)) == (str(second), repr(second))
    assert "601,728" not in str(first) and f"{TINY.parameters:,} parameters under fsdp on 8 ranks" in str(first)
    assert "predicted" in str(first) and "all_gather" in str(first)


def test_the_calling_process_is_left_alone(tmp_path):
    """Not even torch is imported in it; and modules of the working folder do not come between."""
    (tmp_path / "torch.py").write_text("raise RuntimeError('the folder was looked into')\n")
    code = (
        "import json, sys; from utils.runtime.dry_run import dry_run; from utils.theory.architecture import "
        "Architecture; seen = []; run = dry_run(Architecture(64, 1, 2, vocabulary=64, ffn=64), 4, sequence=8, "
        "progress=lambda share, doing: seen.append(share)); "
        "print(json.dumps([run.total, 'torch' in sys.modules, sorted(seen) == seen and 0 <= min(seen)]))"
    )
    suite = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(suite), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    total, imported, rising = json.loads(done.stdout.splitlines()[-1])
    assert total > 0 and not imported and rising


def test_no_process_is_left_whatever_happens():
    def interrupt(share, doing):
        raise KeyboardInterrupt

    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(KeyboardInterrupt):
        dry_run(TINY, 8, progress=interrupt)
    with pytest.raises(DryRunFailed, match=r"was still at starting after 0\.2 seconds and was ended"):
        dry_run(TINY, 8, timeout=0.2)
    assert set(psutil.Process().children(recursive=True)) <= before


def test_a_failure_says_where_and_why():
    with pytest.raises(DryRunFailed, match=r"failed during .*Storage size calculation overflowed") as error:
        dry_run(TINY, 8, batch=10**9, sequence=10**9)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dry_run("Lama-2-70B", 8), "did you mean 'Llama-2-70B'"),
        (lambda: dry_run("GPT-2", 8), "sequence is 2048, but the model has learned 1,024 positions"),
        (lambda: dry_run(5, 8), "model is 5; give an Architecture"),
        (lambda: dry_run(TINY, 0), "world_size is 0; .* at least 1"),
        (lambda: dry_run(TINY, 2048), "world_size is 2048; .* at most 1,024"),
        (lambda: dry_run(TINY, 8, "ddp"), "strategy is 'ddp', which is not known here"),
        (lambda: dry_run(TINY, 8, "hsdp"), "shard_size is None; hsdp needs the size"),
        (lambda: dry_run(TINY, 8, shard_size=4), "shard_size is 4, but fsdp has no shard groups"),
        (lambda: dry_run(TINY, 8, recompute=1), "recompute is 1; it is yes or no"),
        (lambda: dry_run(TINY, 8, batch=0), "batch is 0; .* at least 1"),
        (lambda: dry_run(replace(TINY, norms_per_layer=3), 8), "norms_per_layer is 3, .* give 0, 2 or 4"),
        (lambda: dry_run(TINY, 8, timeout=0), "timeout is 0; .* finite number above 0"),
        (lambda: dry_run(TINY, 8, progress=3), "progress is 3; give a function"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
