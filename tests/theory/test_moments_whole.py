"""The moments of a step with whole weights, against PyTorch's memory tracker: one rank, fake tensors."""

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from tests.theory.traced_fsdp import Decoder
from utils.theory.architecture import Architecture
from utils.theory.breakdown import training_memory
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES, Recipe

BF16 = Recipe("Adam, everything in bf16", 2, 2, 0, 4, 2, "the traced program", foreach=2)
# hidden, layers, heads, kv_heads, head_dim, ffn, vocabulary; tokens; gated, recompute, tied; the moment of the peak
CASES = [
    ((512, 4, 8, 8, 64, 1536, 1000), 2048, True, False, False, "loss"),
    ((512, 2, 8, 8, 64, 1536, 16000), 512, True, False, True, "loss"),
    ((512, 4, 8, 8, 64, 1536, 100), 4096, True, True, False, "backward, last block's MLP"),
    ((512, 4, 8, 1, 64, 512, 100), 4096, True, False, False, "backward, last norm"),
    ((512, 1, 8, 8, 64, 2048, 100), 256, True, True, False, "backward, last block's MLP end"),
    ((512, 4, 8, 8, 64, 2048, 1000), 2048, False, True, False, "backward, last block's MLP end"),
    ((512, 4, 8, 8, 64, 2048, 100), 1024, False, False, False, "backward, last block's MLP end"),
    ((512, 4, 8, 8, 192, 600, 1000), 2048, False, True, False, "backward, last block's attention"),
]
NARROW = [  # recomputed, gated
    ((512, 4, 8, 1, 64, 512, 100), 4096, True, True, False, "backward, last block's norm"),
    ((512, 4, 8, 1, 64, 200, 100), 4096, True, True, False, "backward, last block's norm"),
]


def peak(dtype, sizes, tokens, gated, recompute, tied):
    """Bytes at the peak of the second step; gradients are kept, as DDP's buckets are."""
    with FakeTensorMode():
        torch.set_default_dtype(dtype)
        try:
            model = Decoder(*sizes, gated, recompute, tied)
        finally:
            torch.set_default_dtype(torch.float32)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        batch = torch.randint(0, sizes[-1], (1, tokens))
        with tracker:
            for _ in range(2):
                tracker.reset_mod_stats()
                tracker._peak_mem.clear()
                tracker._peak_mem_snap.clear()
                logits = model(batch).float()
                loss = F.cross_entropy(logits.view(-1, sizes[-1]), batch.view(-1))
                del logits
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
        (snapshot,) = tracker.get_tracker_snapshot("peak").values()
    return snapshot["Total"]


def predicted(recipe, sizes, tokens, gated, recompute, tied, strategy="ddp"):
    model = Architecture(
        *sizes[:-1], vocabulary=sizes[-1], gated_mlp=gated, tied_embeddings=tied,
        norm="rms" if gated else "layer without bias",
    )  # fmt: skip
    how = "full" if recompute else "none"
    return training_memory(model, 1, strategy, tokens, 1, how, recipe=recipe, optimizer_step="for-loop")


def check(dtype, recipe, case):
    *given, moment = case
    found, seen = predicted(recipe, *given), peak(dtype, *given)
    tokens, gated = given[1], given[2]
    ours = found.total - 8 * tokens  # the tracked program takes its tokens for labels, too
    assert found.peak_moment.name == moment
    # LayerNorm's statistics are in the precision of its input on the CPU, in fp32 here.
    assert ours == seen if gated else seen <= ours <= 1.0004 * seen


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_peak_is_traced_as_predicted(case):
    check(torch.float32, PRECISION_RECIPES["fp32"], case)


@pytest.mark.parametrize("case", NARROW, ids=str)
def test_beside_a_narrow_mlp_the_norm_is_the_peak(case):
    """Without that moment the last of them was 10.8% too low. In fp32 it is up to 3% too high."""
    check(torch.bfloat16, BF16, case)
    *given, _ = case
    ours = predicted("fp32", *given).total - 8 * given[1]
    seen = peak(torch.float32, *given)
    assert seen <= ours <= 1.03 * seen


@pytest.mark.parametrize("strategy", ["ddp", "zero1", "zero2"])
def test_all_strategies_with_whole_weights_have_the_same_moments(strategy):
    names = [moment.name for moment in training_memory(PRESETS["GPT-2"], 8, strategy, 512).moments]
    assert names == [moment.name for moment in training_memory(PRESETS["GPT-2"], 8, "ddp", 512).moments]
    assert {"backward, last block's MLP end", "backward, last block's norm"} <= set(names)
