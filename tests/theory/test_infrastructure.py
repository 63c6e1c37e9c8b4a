"""Stragglers, the way of a gradient, oversubscribed fabrics, what a model eats, and which all-reduce."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.algorithms import Choice, choices, crossover, fastest, in_switch
from utils.theory.fabric import crossing, ring_rate, shared_rate, uplink
from utils.theory.feed import (
    SAMPLES,
    Sample,
    checkpoint_bytes,
    checkpoint_stall,
    feed,
    most_ranks,
    step_with_loading,
    text,
)
from utils.theory.flops import PEAK_FLOPS, flops_per_token
from utils.theory.host_path import Stage, stages, sustained, way_seconds
from utils.theory.models import PRESETS
from utils.theory.nccl import nccl_latency
from utils.theory.stragglers import chance_of_one, slowdown, step_of_all, wasted
from utils.theory.units import GB, MB

TIMES = st.lists(st.floats(0.001, 10), min_size=1, max_size=16)


@given(TIMES)
def test_a_step_is_the_slowest_ranks(times):
    assert step_of_all(times, 0.5) == max(times) + 0.5
    assert 0 <= wasted(times) < 1


def test_one_slow_rank():
    assert slowdown(64, 2) == 2
    assert slowdown(4, 2, handed_out_anew=True) == pytest.approx(4 / 3.5)
    assert slowdown(1000, 2, handed_out_anew=True) == pytest.approx(1, abs=0.001)
    assert wasted([1, 1, 1, 2]) == pytest.approx(1 - 5 / 8) and wasted([0.0]) == 0
    assert chance_of_one(64, 0.001) == pytest.approx(0.062, abs=0.001) and chance_of_one(16_384, 0.001) > 0.9999


def test_the_way_without_gpudirect_has_one_stage_more_or_two():
    direct, pinned = stages(50 * GB, 63 * GB, True), stages(50 * GB, 63 * GB, False)
    pageable = stages(50 * GB, 63 * GB, False, host_copy=10 * GB)
    assert [len(way) for way in (direct, pinned, pageable)] == [1, 2, 3]
    assert way_seconds(1 * GB, direct) == pytest.approx(1 / 50)
    assert way_seconds(1 * GB, pinned) == pytest.approx(1 / 63 + 1 / 50)
    assert way_seconds(1 * GB, pageable) == pytest.approx(1 / 63 + 1 / 10 + 1 / 50)
    assert sustained(pageable) == 10 * GB and sustained(pinned) == 50 * GB
    assert sustained(pinned, in_pieces=False) == pytest.approx(GB / (1 / 63 + 1 / 50))


@given(st.floats(1e3, 1e10), st.lists(st.floats(1e6, 1e12), min_size=1, max_size=4), st.floats(1e3, 1e10))
def test_pieces_follow_each_other_like_a_pipeline(size, rates, piece):
    """Against a pipeline that is played through, piece by piece."""
    way = [Stage(str(i), rate) for i, rate in enumerate(rates)]
    pieces = max(1, min(200, round(size / piece)))
    size = pieces * piece
    free = [0.0] * len(way)
    for _ in range(pieces):
        ready = 0.0
        for i, stage in enumerate(way):
            free[i] = ready = max(ready, free[i]) + piece / stage.rate
    assert way_seconds(size, way, piece) == pytest.approx(free[-1], rel=1e-6)


def played(nodes, per_leaf, seed):
    """How many nodes of the busiest leaf, and of the average one, send to another leaf in a ring in a random order."""
    order = list(range(nodes))
    random.Random(seed).shuffle(order)
    leaf = {node: node // per_leaf for node in order}
    out = [0] * -(-nodes // per_leaf)
    for a, b in itertools.pairwise([*order, order[0]]):
        out[leaf[a]] += leaf[a] != leaf[b]
    return sum(out) / len(out)


def test_a_ring_that_follows_the_leaves_crosses_once():
    assert crossing(8, 8) == 0 and crossing(64, 8) == 1
    mean = sum(played(64, 8, seed) for seed in range(300)) / 300
    assert crossing(64, 8, "at random") == pytest.approx(mean, rel=0.02)
    assert uplink(50 * GB, 8, 2) == 200 * GB
    assert ring_rate(50 * GB, 64, 8, 8) == 50 * GB
    assert ring_rate(50 * GB, 64, 8, 2, "at random") == pytest.approx(200 * GB / (8 * 56 / 63))
    assert ring_rate(50 * GB, 8, 8, 100, "at random") == 50 * GB
    assert ring_rate(50 * GB, 64, 8, 1, "at random") == 50 * GB
    assert shared_rate(25 * MB, 0) == 25 * MB and shared_rate(25 * MB, 1) == 12.5 * MB


def test_what_a_model_eats():
    sample = text("Llama-2-7B", 4096)
    model = PRESETS["Llama-2-7B"]
    assert sample.flops == 4096 * flops_per_token(model.parameters, model.layers, model.hidden, 4096)
    assert sample.bytes == 8192
    found = feed(sample, 1024, "H100", 0.4)
    assert found.samples_per_second == pytest.approx(1024 * 0.4 * PEAK_FLOPS["H100"] / sample.flops)
    assert found.bytes_per_second == found.samples_per_second * 8192 < 20 * MB  # text is next to nothing
    assert feed(SAMPLES["ResNet-50, JPEG"], 8).bytes_per_second > 10 * GB  # images are not


@given(st.floats(0.01, 1), st.floats(1e4, 1e8), st.floats(1e6, 1e10))
def test_when_loading_becomes_the_step(compute, batch, rate):
    most = most_ranks(compute, batch, rate)
    if 0 < most < 10**6:
        assert step_with_loading(compute, batch, rate, most) == pytest.approx(compute)
        assert step_with_loading(compute, batch, rate, most + 1) > compute * (1 - 1e-9)
    assert step_with_loading(compute, batch, rate, 2, ahead=False) == pytest.approx(compute + 2 * batch / rate)


def test_checkpoints():
    assert checkpoint_bytes(70e9) == 980 * GB
    assert checkpoint_stall(980 * GB, 10 * GB) == 98
    assert checkpoint_stall(980 * GB, 10 * GB, copy_rate=400 * GB) == pytest.approx(2.45)


def test_choices_are_nccls():
    found = {(choice.algorithm, choice.protocol): choice for choice in choices(64, 8, 50 * GB)}
    assert len(found) == 6
    assert found["ring", "Simple"].latency == nccl_latency("all_reduce", 64, 8)
    assert found["ring", "Simple"].rate == pytest.approx(50 * GB * 64 / 126)
    assert found["tree", "Simple"].rate == pytest.approx(0.92 * 50 * GB / 2)
    assert found["tree", "LL"].rate == pytest.approx(0.92 * 50 * GB / 3.8 / 2)
    inside = {(c.algorithm, c.protocol): c for c in choices(8, 1, 370 * GB)}
    assert inside["tree", "LL128"].rate == pytest.approx(0.92 * 370 * GB * 7 / 9 / 2)
    assert str(found["ring", "LL"]) == "ring, LL" and str(in_switch(8, 450 * GB)) == "switch"


@pytest.mark.parametrize(("world_size", "nodes"), [(16, 2), (64, 8), (1024, 128)])
def test_small_messages_want_the_tree_and_large_ones_the_ring(world_size, nodes):
    offered = choices(world_size, nodes, 50 * GB)
    assert fastest(offered, 1e4).algorithm == "tree" and fastest(offered, 1e11).algorithm == "ring"
    tree, ring = (
        next(c for c in offered if (c.algorithm, c.protocol) == (name, "Simple")) for name in ("tree", "ring")
    )
    at = crossover(tree, ring)
    assert tree.seconds(at) == pytest.approx(ring.seconds(at))
    assert tree.seconds(at / 2) < ring.seconds(at / 2) and tree.seconds(2 * at) > ring.seconds(2 * at)
    assert crossover(ring, tree) is None


def test_lines_that_do_not_cross():
    slow, fast = Choice("a", "", 2.0, 1.0), Choice("b", "", 1.0, 2.0)
    assert crossover(slow, fast) == 0 and crossover(fast, slow) is None
    assert crossover(Choice("a", "", 2.0, 1.0), Choice("b", "", 1.0, 1.0)) == 0


def test_a_switch_adds_up_at_the_published_rate():
    """8 H100: busbw 483 GB/s measured at 16 GiB, of NVLink's 450 one way; NCCL's own constants say 595."""
    busbw = in_switch(8, 450 * GB).rate * 14 / 8
    assert 483 * GB < busbw < 1.25 * 483 * GB


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: step_of_all([]), r"seconds is \[\]"),
        (lambda: step_of_all([-1]), "a rank's seconds is -1"),
        (lambda: slowdown(4, 0.5), "factor is 0.5"),
        (lambda: chance_of_one(4, 1), "share is 1"),
        (lambda: stages(0, 1, True), "network is 0"),
        (lambda: stages(1, 1, "yes"), "direct is 'yes'"),
        (lambda: way_seconds(1, []), r"way is \(\); give at least one stage"),
        (lambda: way_seconds(1, ["x"]), r"way is \['x'\]; give a list of Stage"),
        (lambda: sustained([]), "give at least one stage"),
        (lambda: Stage("", 1), "name is ''"),
        (lambda: uplink(1, 8, 0.5), "oversubscription is 0.5"),
        (lambda: crossing(8, 8, "somehow"), "placement is 'somehow'"),
        (lambda: shared_rate(1, -1), "others is -1"),
        (lambda: text("GPT-9"), "model is 'GPT-9'"),
        (lambda: feed(SAMPLES["ViT-B/16, JPEG"], 8, "Z80"), "gpu is 'Z80'"),
        (lambda: feed(Sample("x", 1, 1), 8, utilization=1.5), "utilization is 1.5"),
        (lambda: feed(Sample("x", 1, 1), 8, utilization=0), "utilization is 0"),
        (lambda: step_with_loading(1, 1, 0, 1), "store_rate is 0"),
        (lambda: most_ranks(1, 0, 1), "batch_bytes is 0"),
        (lambda: checkpoint_bytes(0), "parameters is 0"),
        (lambda: checkpoint_stall(1, 1, copy_rate=0), "copy_rate is 0"),
        (lambda: choices(1, 1, 1), "world_size is 1"),
        (lambda: choices(8, 3, 1), "nodes is 3"),
        (lambda: in_switch(8, 1, latency=-1), "latency is -1"),
        (lambda: in_switch(8, 1).seconds(-1), "total_bytes is -1"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
