"""The calculators and pictures of lesson 07 show what the laws say, in every setting, and keep one figure."""

import re
from itertools import product

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.theory.fabric import PLACEMENTS, ring_rate
from utils.theory.feed import feed, most_ranks
from utils.theory.host_path import stages, way_seconds
from utils.theory.links import LINKS
from utils.theory.restarts import LLAMA_3_GPU_HOURS, loss, mean_time_between_failures, young_interval
from utils.theory.units import GB, MB
from utils.views import infra_feed, infra_restarts, infra_way
from utils.views.figure import WIDTH
from utils.views.infra_feed_calculator import BATCHES, STORES, FeedCalculator
from utils.views.infra_restarts_calculator import CHECKPOINTS, EVERY, GPU_HOURS, STEPS, RestartsCalculator
from utils.views.infra_slots import height, slots_picture, slots_scene
from utils.views.infra_way_calculator import (
    NETWORKS,
    OVERSUBSCRIPTIONS,
    PER_LEAF,
    PIECES,
    SIZES,
    SLOTS,
    WayCalculator,
)

STUCK = {"A": [("holds", 0), ("holds", 2), ("waits", None)], "B": [("holds", 1), ("works", 3), ("done", 1)]}


def test_restarts_are_the_law():
    calculator = RestartsCalculator(gpus=4096, every=200, checkpoint=30, restart=300, step=5)
    failure = mean_time_between_failures(4096, GPU_HOURS[3])
    assert calculator.result.loss == loss(1000, 30, failure, 300)
    young = round(young_interval(30, failure) / 5)
    assert calculator.result.question.young_steps(4096) == young
    assert calculator.result.best == loss(5 * young, 30, failure, 300)
    words = calculator.result.words
    assert "4,096 GPUs fail every 12.4 hours" in words and "costs 99.5 steps on the average, 200 at most" in words
    assert f"Young's interval is {young:,} steps" in words
    assert abs(GPU_HOURS[3] - LLAMA_3_GPU_HOURS) < 1


def test_feed_is_the_law():
    asked = FeedCalculator("ViT-B/16, JPEG", gpus=256, store=10, batch=64, gpu="A100", utilization=0.5).result.question
    sample = infra_feed.OFFERED["ViT-B/16, JPEG"]
    eaten = feed(sample, 256, "A100", 0.5)
    assert asked.feed == eaten and asked.compute == pytest.approx(64 * 256 / eaten.samples_per_second)
    assert asked.loading == pytest.approx(256 * 64 * sample.bytes / (10 * GB))
    assert asked.step == max(asked.compute, asked.loading)
    assert asked.most == most_ranks(asked.compute, 64 * sample.bytes, 10 * GB)
    assert "loading is the step" in infra_feed.feed_words(asked)
    assert "compute is the step" in FeedCalculator("Llama-2-7B, 4,096 tokens").result.words


def test_ways_are_the_law():
    calculator = WayCalculator(100 * MB, "InfiniBand NDR", "PCIe 4 x16", 10, "one piece", 64, 4, "at random")
    asked = calculator.result.question
    rate = ring_rate(50 * GB, 64, PER_LEAF, 4, "at random")
    assert asked.rate == rate < 50 * GB
    pcie = LINKS["PCIe 4 x16"].one_way
    for name, way in zip(
        infra_way.WAYS,
        (stages(rate, pcie, True), stages(rate, pcie, False), stages(rate, pcie, False, 10 * GB)),
        strict=True,
    ):
        assert asked.way(name) == way and asked.seconds(name) == way_seconds(100 * MB, way)
    calculator.pieces = "pieces of 4 MB"
    assert calculator.result.question.seconds("pageable memory") < asked.seconds("pageable memory")
    assert "in pieces of 4 MB" in calculator.result.words


@pytest.mark.parametrize(("gpus", "every"), list(product(infra_restarts.SCALES[::2], (1, 100, 5000))))
@pytest.mark.parametrize(("checkpoint", "step"), [(1, 0.1), (300, 60), (60, 10)])
def test_restarts_can_be_read(readable, gpus, every, checkpoint, step):
    asked = infra_restarts.Question(gpus, 5000, checkpoint, 1800, step, every)
    readable(infra_restarts.restarts_scene(asked), WIDTH, infra_restarts.HEIGHT)
    assert infra_restarts.restarts_words(asked)


@pytest.mark.parametrize("sample", infra_feed.OFFERED)
@pytest.mark.parametrize(("gpus", "batch", "store"), [(1, 1, 1000), (16_384, 512, 0.1), (64, 128, 10)])
def test_feeds_can_be_read(readable, sample, gpus, batch, store):
    assert batch in BATCHES and store in STORES
    asked = infra_feed.Question(infra_feed.OFFERED[sample], gpus, "H100", 0.4, batch, store * GB)
    readable(infra_feed.feed_scene(asked), WIDTH, infra_feed.HEIGHT)
    assert infra_feed.feed_words(asked)


@pytest.mark.parametrize(("size", "network", "placement"), list(product(SIZES[::2], NETWORKS[::2], PLACEMENTS)))
@pytest.mark.parametrize("pieces", PIECES)
def test_ways_can_be_read(readable, size, network, placement, pieces):
    asked = infra_way.Question(
        size,
        LINKS[network],
        LINKS[SLOTS[0]],
        30 * GB,
        PIECES[pieces],
        2048,
        16,
        OVERSUBSCRIPTIONS[-1],
        placement,
    )
    readable(infra_way.way_scene(asked), WIDTH, infra_way.HEIGHT)
    assert infra_way.way_words(asked)


def test_a_row_ends_when_its_way_does(readable):
    """The last bar of each way ends after all of its stretches, whole or in pieces."""
    for pieces in PIECES:
        asked = WayCalculator(pieces=pieces, oversubscription=4, placement="at random").result.question
        scene = infra_way.way_scene(asked)
        right = max(box.x + box.width for box in scene.boxes)
        longest = max(infra_way.WAYS, key=asked.seconds)
        assert longest == "pageable memory" and right == pytest.approx(172 + WIDTH - 172 - 90)


@pytest.mark.parametrize(
    ("calculator", "moves"),
    [
        (
            RestartsCalculator,
            {"gpus": 1000, "every": 3000, "step": 100, "gpu_hours": 1, "checkpoint": 99, "restart": 9},
        ),
        (FeedCalculator, {"gpus": 100, "store": 3, "batch": 9999, "utilization": 1, "gpu": "A100"}),
        (WayCalculator, {"size": 1, "nodes": 99, "oversubscription": 9, "host_copy": 100, "placement": "at random"}),
    ],
)
def test_moves_redraw_one_figure(calculator, moves, controls, objects_kept):
    shown = calculator()
    assert len(controls(shown)) == {RestartsCalculator: 6, FeedCalculator: 6, WayCalculator: 8}[calculator]
    for name, value in moves.items():
        before = shown.result
        setattr(shown, name, value)
        assert shown.result != before, name
    assert objects_kept(shown, 16) < 600
    with pytest.raises(AttributeError, match="setting of a"):
        shown.gpu_count = 3


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="network"):
        WayCalculator(network="string")
    with pytest.raises(ValueError, match="sample"):
        FeedCalculator("ImageNet-22k")
    assert set(NETWORKS) | set(SLOTS) <= set(LINKS) and CHECKPOINTS[0] > 0 and EVERY[-1] == 5000 and STEPS[0] == 0.1


def test_slots_show_who_holds_and_who_waits(readable):
    picture = slots_picture(STUCK, 4, "Rank by rank")
    assert repr(picture).startswith(
        "Rank by rank. job A, rank 0: holds slot 0, waits for its job; job A, rank 1: holds"
    )
    assert "job A, rank 2: waits for a slot" in repr(picture) and "job B, rank 2: done" in repr(picture)
    scene = slots_scene(STUCK, 4, "Rank by rank")
    readable(scene, WIDTH, height(6))
    filled = [box for box in scene.boxes if box.fill != "#FFFFFF"]
    assert len(filled) == 4 and len(scene.boxes) == 24  # what is done holds nothing
    with pytest.raises(ValueError, match="slots is 0"):
        slots_picture(STUCK, 0, "x")


def test_the_answers_that_the_lesson_folds_away_are_the_calculators():
    cells = {cell.id: cell.source for cell in read_notebook(ROOT / "notebooks/07_infrastructure.ipynb").cells}

    def said(cell):
        return cells[cell].partition("<summary>Answers</summary>")[2]

    way = WayCalculator(host_copy=5)
    assert f"{1e3 * way.result.question.seconds('pageable memory'):.3g} ms" in said("07-way-calculator-says")
    way.pieces = "pieces of 500 kB"
    assert f"{way.result.question.sustained('pageable memory') / GB:.3g} GB/s" in said("07-way-calculator-says")
    way.oversubscription, way.placement = 4, "at random"
    assert f"{100 * way.result.question.rate / (50 * GB):.3g} %" in said("07-way-calculator-says")
    jobs = RestartsCalculator(gpus=16_384, every=100)
    shares = [infra_restarts.share(each.lost) for each in (jobs.result.loss, RestartsCalculator(every=20).result.loss)]
    quick = RestartsCalculator(every=20, checkpoint=1).result.loss
    assert all(each in said("07-restarts-calculator-says") for each in (*shares, infra_restarts.share(quick.lost)))
    feeds = FeedCalculator("ViT-B/16, JPEG", gpus=64).result.question
    numbers = re.findall(r"[\d,.]+", said("07-feed-calculator-says"))
    assert f"{feeds.feed.samples_per_second:,.0f}" in numbers and f"{feeds.most}" in numbers
