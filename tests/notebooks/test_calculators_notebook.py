"""What the notebook of calculators says in its text, and folds away as answers, is what the laws say."""

import re

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.breakdown import training_memory
from utils.theory.models import PRESETS
from utils.theory.peers import job_estimates
from utils.theory.traffic import step_bytes
from utils.theory.units import GB, GiB

CELLS = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/calculators.ipynb").cells}
LARGE, SMALL = PRESETS["Llama-2-70B"], PRESETS["Llama-2-7B"]


def peak(gpus, strategy="fsdp", **more):
    return training_memory(LARGE, gpus, strategy, 2048, **more).total / GB


def across(strategy, group=None):
    return step_bytes(SMALL.parameters, strategy, 64, group, nodes=8).across / GB


def test_answers_on_what_fits():
    answers = CELLS["calc-largest-says"].partition("<summary>Answers</summary>")[2]
    full = peak(64, recomputation="full")
    assert f"Recomputation: {full:.1f} GB instead of {peak(64):.1f} GB" in answers
    assert f"With 128 GPUs and no recomputation fsdp needs {peak(128):.1f} GB, with 1,024 still" in answers
    assert f"still {peak(1024):.1f} GB" in answers and full < 80 < peak(1024)
    assert f"the weights alone are {2 * LARGE.parameters / GB:.0f} GB" in answers
    sizes = {g: peak(64, "hsdp", shard_size=g, recomputation="full") for g in (8, 16, 32)}
    fused = peak(64, "hsdp", shard_size=16, recomputation="full", optimizer_step="fused")
    assert f"- {sizes[8]:.1f} GB. A group of 16 needs {sizes[16]:.1f} GB while Adam" in answers
    assert f"fits with {fused:.1f} GB if one fused kernel" in answers and fused < 80 < sizes[16]
    assert f"a group of 32 with {sizes[32]:.1f} GB leaves room" in answers


def test_answers_on_what_moves():
    answers = CELLS["calc-strategies-says"].partition("<summary>Answers</summary>")[2]
    fsdp, groups, ones = across("fsdp"), across("hsdp", 8), across("hsdp", 1)
    assert across("hsdp", 64) == fsdp and ones == across("ddp")
    assert f"fsdp: {fsdp:.1f} GB across each node's border instead of {groups:.1f} GB" in answers
    assert f"With groups of 1 it is ddp: {ones:.1f} GB" in answers
    by_rules = [step_bytes(SMALL.parameters, "fsdp", 64, rules=rules).per_rank / GB for rules in ("ring", "gloo")]
    assert f"From {by_rules[0]:.1f} GB to {by_rules[1]:.1f} GB by each rank" in answers


def test_answers_on_why_calculators_disagree():
    answers = CELLS["calc-peers-calculator"].partition("<summary>Answers</summary>")[2]
    found = job_estimates(SMALL, 8, 3, 4096)
    kept, saved = (found[name]["activations"] / GB for name in ("EleutherAI", "EleutherAI, checkpointing"))
    assert (
        f"The attention scores: {kept - saved:.1f} GB" in answers and f"activations, {saved:.1f} GB, stays" in answers
    )
    assert f"{found['EleutherAI'].parameters:,.0f} parameters instead of {SMALL.parameters:,}" in answers
    assert (found["EleutherAI"]["live parameters"], found["EleutherAI"]["buckets"]) == (2 * GB, GB)
    assert f"its gradient, {found['DeepSpeed']['largest layer'] / GB:.2f} GB" in answers


def test_the_peaks_are_near_the_measured_ones():
    """86 and 26 GiB: PyTorch's FSDPMemTracker, Llama-2-70B on 64 ranks, 1 x 2048 tokens."""
    for how, measured in (("none", 86), ("full", 26)):
        assert abs(peak(64, recomputation=how) * GB / GiB - measured) < 0.02 * measured
        assert f"{measured}" in CELLS["calc-room-says"]
    assert re.search(r"takes 92 GB .* with full recomputation 28 GB", CELLS["calc-take-away"], re.DOTALL)
    assert (round(peak(64)), round(peak(64, recomputation="full"))) == (92, 28)
