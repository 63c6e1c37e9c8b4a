"""The time line places operations by rank and time; its words do not depend on the times."""

from types import SimpleNamespace

import pytest

from utils.views.clock import round_step
from utils.views.figure import WIDTH
from utils.views.png import size
from utils.views.timeline import _lanes, _scene, timeline_picture


def op(kind, issued_at, completed_at, total_bytes=1024):
    return SimpleNamespace(kind=kind, bytes=total_bytes, issued_at=issued_at, completed_at=completed_at)


def run(shift=0.0, ranks=4):
    return [
        [
            op("broadcast", 0.001 * r + shift, 0.010 + shift),
            op("all_reduce", 0.005 + shift, 0.040),
            op("send", 0.02, 0.021),
        ]
        for r in range(ranks)
    ]


def test_overlapping_operations_lie_on_different_lanes():
    a, b, c = op("x", 0.0, 2.0), op("y", 1.0, 3.0), op("z", 2.0, 4.0)
    assert [(lane, o.kind) for lane, o in _lanes([a, b, c])] == [(0, "x"), (1, "y"), (0, "z")]


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_words_do_not_overlap_or_leave_the_picture(readable, ranks):
    picture = timeline_picture(run(ranks=ranks), "A step")
    lanes = [_lanes(ops) for ops in run(ranks=ranks)]
    heights = [max(1, len({lane for lane, _ in rank})) * 20 + 10 for rank in lanes]
    width, height = size(picture.image_bytes())
    assert (width, height) == (WIDTH, 62 + sum(heights) + 34)
    readable(_scene(lanes, heights, "A step"), width, height)


def test_bars_begin_and_end_where_the_operations_do():
    ops = [[op("all_reduce", 0.0, 0.5), op("all_gather", 0.5, 1.0)]]
    boxes = _scene([_lanes(ops[0])], [30], "")
    bars = [box for box in boxes.boxes if box.x >= 78]
    assert bars[0].width == pytest.approx(bars[1].width)
    assert bars[0].x + bars[0].width == pytest.approx(bars[1].x)
    assert bars[1].x + bars[1].width == pytest.approx(WIDTH - 16)


def test_the_words_count_operations_and_name_no_times():
    alt = timeline_picture(run()).alt
    assert alt == "Operations by rank: time line of 4 ranks; every rank issued 1 all_reduce, 1 broadcast, 1 send."
    assert timeline_picture(run(shift=0.003)).alt == alt


def test_what_never_completed_is_told_and_the_rank_that_did_less():
    ops = run(ranks=3)
    ops[1] = [op("all_reduce", 0.0, None)]
    alt = timeline_picture(ops, "A hang").alt
    assert "ranks 0, 2 issued 1 all_reduce, 1 broadcast, 1 send; rank 1 issued 1 all_reduce." in alt
    assert alt.endswith("Never completed: 1.")


def test_nothing_issued_is_a_picture_too():
    assert "every rank issued nothing" in timeline_picture([[], []]).alt
    assert timeline_picture([[], []]).image_bytes()


@pytest.mark.parametrize("raw, step", [(0.9, 1), (1.0, 1), (1.2, 2), (3, 5), (7, 10), (0.03, 0.05), (130, 200)])
def test_the_clock_has_round_steps(raw, step):
    assert round_step(raw) == pytest.approx(step)
