"""What lesson 08 says in words and typed numbers of the planner and of published runs is what they give."""

from pathlib import Path

import pytest

from utils.theory.planner import hybrid_jobs, plan
from utils.theory.scale import published_runs, score

OUTSIDE = Path(__file__).parents[1] / "data" / "published_runs_outside.csv"


def test_the_answers_on_the_planner():
    slow = plan("Llama-3-8B", 64, network=100, global_batch=256)
    assert (slow.best.strategy, slow.best.shard_size) == ("hsdp", 8)
    assert 4 / 3 < slow.row("fsdp").seconds / slow.best.seconds < 1.5  # "more than a third longer"
    many = plan("Llama-3-8B", 64, network=100, global_batch=16 * 64)
    assert many.best.strategy == "zero1"
    assert many.row("hsdp", shard_size=8).seconds / many.best.seconds == pytest.approx(1.01, abs=0.005)
    for network, taken in ((400, "hsdp"), (3200, "fsdp")):
        b200 = plan("Llama-3-8B", 64, gpu="B200", network=network, global_batch=256)
        ddp = b200.row("ddp")
        assert ddp.fits and ddp.micro_batch == 4 and b200.best.strategy == taken
    few = plan("Llama-3-70B", 8, global_batch=32)
    assert few.best is None and any("FSDP with full recomputation on 32 GPUs" in each for each in few.would_fit)


def test_rules_and_rows():
    first = plan("Llama-3-8B", 8, gpu="B200", memory=288e9, global_batch=128)
    assert first.best.strategy == "ddp" and first.best.again == "none"
    second = plan("Llama-3-8B", 8, gpu="B200", global_batch=128)
    assert second.row("ddp").again == "full" and not second.row("ddp", again="none").fits
    assert second.best.strategy == "fsdp"


def test_a_slower_network_has_the_longer_pipeline():
    """A GPU holds a smaller part there, and fewer units exchange it."""
    fast, slow = (hybrid_jobs("Llama-3-70B", 64, global_batch=256, network=network)[0] for network in (3200, 400))
    assert slow.job.pipeline > fast.job.pipeline and slow.memory < fast.memory and slow.units < fast.units


def test_the_two_rows_far_below_their_neighbours():
    mfu = {run.name: run.mfu for run in (*published_runs(), *published_runs(OUTSIDE))}
    found = {
        gpus: next(share for name, share in mfu.items() if name.startswith(f"llm-foundry 1b s2048 {gpus}xA100-40GB"))
        for gpus in (16, 32, 64)
    }
    assert {gpus: round(100 * share) for gpus, share in found.items()} == {16: 56, 32: 45, 64: 55}
    rows = [row for row in (*score(), *score(published_runs(OUTSIDE))) if row.run.name.startswith("llm-foundry 760m")]
    rows = {row.run.name: row for row in rows if "H100" in row.run.name}
    odd = rows.pop("llm-foundry 760m s2048 8xH100-80GB mb24x2")
    assert round(100 * odd.run.mfu) == 35 and odd.error > 0.2
    assert len(rows) == 8 and all(abs(row.error) < 0.12 for row in rows.values())
