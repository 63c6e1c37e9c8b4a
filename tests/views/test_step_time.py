"""The picture of a step's time, and the curve over bucket sizes: bars where the events are, words that hold."""

from types import SimpleNamespace

import pytest

from utils.theory.events import Timeline, measured_timeline
from utils.theory.renamed import renamed
from utils.theory.sharing import Link, tcp_goodput
from utils.theory.step_time import Layer, simulate_step
from utils.theory.units import GB, MB, MiB
from utils.views.bucket_curve import HEIGHT, bucket_curve_picture, bucket_curve_scene
from utils.views.figure import WIDTH
from utils.views.palette import COMMUNICATION, COMPUTE
from utils.views.png import size
from utils.views.step_time import _rows, _short, step_time_picture, step_time_scene

LAYERS = [Layer(0.010, gradient_bytes=4 * MB)] * 8
GIGABIT = Link(tcp_goodput(125 * MB), concurrency=2)
STEP = simulate_step(LAYERS, 2, GIGABIT, bucket_bytes=8 * MiB)


def measured(slower=1.0, began=3.0):
    """What a rank records in a step that goes `slower` times as slowly as the simulation."""
    times = {"compute": [], "communication": []}
    for event in STEP.timeline.events:
        times[event.kind].append((began + event.start * slower, began + event.end * slower))
    ops = [SimpleNamespace(kind="all_reduce", issued_at=a, completed_at=b) for a, b in times["communication"]]
    return measured_timeline(ops, times["compute"])


def test_a_measured_step_is_a_time_line_from_its_begin():
    timeline = measured()
    assert timeline.seconds == pytest.approx(STEP.seconds)
    assert timeline.exposed == pytest.approx(STEP.exposed)
    assert measured_timeline([SimpleNamespace(kind="send", issued_at=2.0, completed_at=3.0)], began=1.5).seconds == 1.5
    assert measured_timeline([]) == Timeline(())


@pytest.mark.parametrize("end", [None, 0.5, float("nan"), float("inf")])
def test_what_was_never_completed_is_no_time_line(end):
    with pytest.raises(ValueError, match=r"all_reduce 0 runs from 1\.0 to"):
        measured_timeline([SimpleNamespace(kind="all_reduce", issued_at=1.0, completed_at=end)])


@pytest.mark.parametrize(
    "timelines",
    [
        {"": STEP.timeline},
        {"simulated": STEP.timeline, "measured, rank 0": measured(1.02), "measured, rank 1": measured(1.3)},
        {"": simulate_step(LAYERS * 12, 8, Link(1 * GB), "fsdp", micro_batches=2).timeline},
        {
            "hsdp": simulate_step(
                LAYERS, 8, Link(1 * GB), "hsdp", shard_size=4, across=GIGABIT, optimizer_seconds=0.02
            ).timeline
        },
        {"": measured_timeline([SimpleNamespace(kind="all_reduce", issued_at=0, completed_at=1e-5)])},
    ],
)
def test_time_lines_can_be_read(readable, timelines):
    scene, height = step_time_scene(timelines, "A step")
    readable(scene, WIDTH, height)
    assert size(step_time_picture(timelines, "A step").image_bytes()) == (WIDTH, height)


def test_bars_stand_where_the_events_are():
    scene, _ = step_time_scene({"": STEP.timeline})
    bars = [box for box in scene.boxes if box.y > 50]
    left, right = min(bar.x for bar in bars), max(bar.x + bar.width for bar in bars)
    scale = (right - left) / STEP.seconds
    for fill, kind in ((COMPUTE.colour, "compute"), (COMMUNICATION.colour, "communication")):
        drawn = sorted((bar.x, bar.width) for bar in bars if bar.fill == fill and not bar.hatched)
        events = sorted((e.start, e.end) for e in STEP.timeline.events if e.kind == kind)
        assert drawn == [pytest.approx((left + a * scale, (b - a) * scale)) for a, b in events]
    [exposed] = [bar for bar in bars if bar.hatched]
    assert exposed.width == pytest.approx(STEP.exposed * scale)


def test_collectives_that_overlap_have_rows_of_their_own():
    served = [event for event in STEP.timeline.events if event.kind == "communication"]
    assert [row for row, _ in _rows(served)] == [0, 1, 0]


def test_short_names_tell_the_layer():
    names = ("forward 3 of micro-batch 0", "backward 12", "all_gather for forward 3", "optimizer")
    assert [_short(name) for name in names] == ["f3", "b12", "3", "optimizer"]


def test_a_narrow_bar_keeps_the_letter_of_its_pass():
    scene, _ = step_time_scene({"": simulate_step(LAYERS * 2, 2, GIGABIT).timeline})
    written = [word.text for word in scene.words]
    assert written.count("f") == written.count("b") == 16


def test_a_measured_step_may_have_names():
    ops = [SimpleNamespace(kind="all_gather", issued_at=1.0, completed_at=2.0)]
    named = renamed(measured_timeline(ops, [(2.0, 3.0)]), {"all_gather 0": "all_gather 7", "compute 0": "backward 7"})
    assert [event.name for event in named.events] == ["all_gather 7", "backward 7"]
    with pytest.raises(ValueError, match="no event is named 'forward'; the events are all_gather 7, backward 7"):
        renamed(named, {"forward": "f"})


def test_words_of_a_measurement_hold_within_the_tolerance_only():
    alt = step_time_picture({"simulated": STEP.timeline, "measured": measured(1.02)}).alt
    assert alt == step_time_picture({"simulated": STEP.timeline, "measured": measured(0.97)}).alt
    assert "simulated: 408 ms with 3 collectives, 168 ms of it only waiting" in alt and "within 10%" in alt
    slow = step_time_picture({"simulated": STEP.timeline, "measured": measured(1.2)}).alt
    assert "measured: 489 ms with 3 collectives, 201 ms" in slow


def test_a_step_and_its_time_line_show_themselves():
    for shown in (STEP, STEP.timeline):
        bundle = shown._repr_mimebundle_()
        assert "408 ms with 3 collectives" in bundle["text/plain"] and "image/png" in bundle


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="nothing takes any time here"):
        step_time_picture({"a": Timeline(())})
    with pytest.raises(ValueError, match="'a' is 3; give a Timeline"):
        step_time_picture({"a": 3})


SIZES = tuple(k * MiB for k in (1, 2, 4, 8, 12, 16, 20, 25, 32))
PREDICTED = {each: simulate_step(LAYERS, 2, GIGABIT, bucket_bytes=each).seconds for each in SIZES}
LIMITS = {"compute alone": STEP.compute, "communication alone": STEP.communication, "nothing overlapped": 0.508}


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.9])
def test_the_curve_can_be_read(readable, factor):
    found = {each: PREDICTED[each] * factor for each in (1 * MiB, 8 * MiB, 25 * MiB)}
    readable(bucket_curve_scene(PREDICTED, found, LIMITS, "Curve"), WIDTH, HEIGHT)
    assert size(bucket_curve_picture(PREDICTED, found, LIMITS).image_bytes()) == (WIDTH, HEIGHT)


def test_a_dot_lies_on_the_line_where_the_two_agree():
    scene = bucket_curve_scene(PREDICTED, {SIZES[3]: PREDICTED[SIZES[3]]}, {}, "")
    *_, dot = scene.boxes
    line = [(one.x1, one.y1) for one in scene.lines if one.width == 1.6][3]
    assert (dot.x + dot.width / 2, dot.y + dot.height / 2) == pytest.approx(line)


def test_the_words_of_the_curve_hold_within_the_tolerance_only():
    alt = bucket_curve_picture(PREDICTED, {SIZES[0]: 1.05 * PREDICTED[SIZES[0]]}, LIMITS).alt
    assert "1 MiB: predicted 368 ms, measured the same within 10%. 2 MiB: predicted 368 ms." in alt
    assert alt.endswith("nothing overlapped: 508 ms.")
    assert "predicted 368 ms, measured 441 ms" in bucket_curve_picture(PREDICTED, {SIZES[0]: 0.441}).alt


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (({1: 1.0},), "1 bucket sizes; give at least two"),
        ((PREDICTED, {7: 1.0}), "measured has the size 7, predicted has not"),
        (({0: 1.0, 2: 1.0},), "a bucket size is 0"),
        (({1: -1.0, 2: 1.0},), "a step time is -1.0"),
        ((PREDICTED, {}, {"x": float("nan")}), "a step time is nan"),
    ],
)
def test_a_curve_of_nothing_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        bucket_curve_picture(*arguments)
