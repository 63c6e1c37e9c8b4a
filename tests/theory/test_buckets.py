"""DDP's buckets against the layouts that PyTorch gives, and against its own assignment on other sizes."""

import csv
import math
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.buckets import BUCKET_CAP_BYTES, FIRST_BUCKET_BYTES, bucket_bytes, ddp_buckets, gradient_bytes
from utils.theory.models import PRESETS
from utils.theory.units import MiB

DATA = Path(__file__).parents[1] / "data"


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


LIMITS = {
    "first 1MiB, then 25MiB": {},
    "cap 25 given explicitly": {"bucket_cap_bytes": 25 * MiB},
    "cap 100 given explicitly": {"bucket_cap_bytes": 100 * MiB},
    "initial iteration (maxsize)": {"first_iteration": True},
}


@pytest.mark.parametrize(
    "row", rows("ddp_bucket_layouts.csv"), ids=lambda r: f"{r['model']}-{r['dtype']}-{r['limits'][:6]}"
)
def test_layouts_of_known_models(row):
    model = PRESETS[{"GPT-2 124M": "GPT-2"}.get(row["model"], row["model"])]
    sizes = gradient_bytes(model, {"fp32": 4, "bf16": 2}[row["dtype"]])
    buckets = bucket_bytes(ddp_buckets(sizes, **LIMITS[row["limits"]]), sizes)
    assert len(sizes) == int(row["tensors"])
    assert len(buckets) == int(row["n_buckets"])
    assert (buckets[0], buckets[-1]) == (int(row["first_bucket_bytes"]), int(row["last_bucket_bytes"]))
    assert (min(buckets), max(buckets)) == (int(row["min_bucket_bytes"]), int(row["max_bucket_bytes"]))
    assert sum(buckets) == int(row["total_bytes"]) == sum(sizes)


# Numbers of fp32 elements: tensors below and above the caps that are tried.
sizes_lists = st.lists(st.integers(0, 64) | st.sampled_from([1, 256, 1000]), min_size=1, max_size=40)


@given(sizes_lists, st.integers(1, 600), st.integers(1, 2000))
def test_pytorch_assigns_the_same(elements, first, cap):
    gradients = [torch.empty(n, dtype=torch.float32) for n in elements]
    order = list(range(len(gradients)))
    theirs, _ = dist._compute_bucket_assignment_by_size(gradients, [first, cap], [False] * len(gradients), order)
    ours = ddp_buckets([4 * n for n in elements], first, cap)
    assert [list(bucket) for bucket in ours] == theirs


@given(sizes_lists, st.integers(1, 2000))
def test_buckets_keep_the_order_and_reach_the_cap(sizes, cap):
    buckets = ddp_buckets(sizes, bucket_cap_bytes=cap)
    assert [i for bucket in buckets for i in bucket] == list(range(len(sizes)))
    for bucket in buckets[:-1]:
        assert sum(sizes[i] for i in bucket) >= cap > sum(sizes[i] for i in bucket[:-1])


def test_the_caps_are_those_of_pytorch():
    assert dist._DEFAULT_FIRST_BUCKET_BYTES == FIRST_BUCKET_BYTES
    sizes = [FIRST_BUCKET_BYTES, BUCKET_CAP_BYTES - 1, 1, 1]
    assert ddp_buckets(sizes) == ((0,), (1, 2), (3,))
    assert ddp_buckets(sizes, bucket_cap_bytes=BUCKET_CAP_BYTES) == ((0, 1), (2, 3))
    assert ddp_buckets(sizes, first_iteration=True) == ((0, 1, 2, 3),)
    assert ddp_buckets([]) == ddp_buckets([], first_iteration=True) == ()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([4, -1],), r"tensor_bytes\[1\] is -1"),
        (([4, 2.5],), r"tensor_bytes\[1\] is 2.5"),
        (([True],), r"tensor_bytes\[0\] is True"),
        ((7,), "tensor_bytes is 7; give a list of sizes"),
        (("ab",), "tensor_bytes is 'ab'; give a list of sizes"),
        (([4], 0), "first_bucket_bytes is 0"),
        (([4], None, math.nan), "bucket_cap_bytes is nan"),
        (([4], None, None, 1), "first_iteration is 1"),
    ],
)
def test_what_is_no_list_of_sizes_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        ddp_buckets(*arguments)


def test_other_bad_input_is_refused():
    with pytest.raises(ValueError, match="no positions among 1 tensors"):
        bucket_bytes(((0, 1),), [4])
    with pytest.raises(ValueError, match="bytes_per_element is 0"):
        gradient_bytes(PRESETS["GPT-2"], 0)
