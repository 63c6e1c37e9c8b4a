"""Predicted and measured bytes side by side: what differs is said, what cannot be measured too."""

import pytest

from utils.theory.traffic import Traffic, traffic_by_rank
from utils.theory.units import MiB
from utils.views.figure import WIDTH
from utils.views.png import size
from utils.views.traffic import _row_height, _scene, _shares, sent_picture

S = 32 * MiB
KINDS = ("broadcast", "all_reduce", "all_gather", "reduce_scatter", "send")


def both(n, kinds=KINDS, factor=1.002):
    predicted = {kind: traffic_by_rank(kind, S, n) for kind in kinds}
    measured = {kind: traffic_by_rank(kind, factor * S, n, rules="gloo") for kind in kinds}
    return predicted, measured


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_words_do_not_overlap_or_leave_the_picture(readable, n):
    predicted, measured = both(n)
    shares = {kind: _shares(predicted[kind], measured[kind], S) for kind in KINDS}
    readable(_scene(shares, S, "Title"), WIDTH, 74 + len(KINDS) * _row_height(shares))


def test_what_differs_is_said_and_what_agrees():
    alt = sent_picture(*both(4), S).alt
    assert "broadcast, sent: predicted 1.00, 1.00, 1.00, 0.00; measured 2.00, 1.00, 0.00, 0.00." in alt
    assert "reduce_scatter, received: predicted 0.75 on every rank; measured 1.50 on every rank." in alt
    assert "all_reduce, sent: predicted 1.50 on every rank; measured the same within 0.02 S." in alt


def test_a_disturbed_counter_changes_the_words():
    predicted, measured = both(4, ["all_reduce"])
    honest = sent_picture(predicted, measured, S).alt
    disturbed = {"all_reduce": [Traffic(1.1 * m.sent, m.received) for m in measured["all_reduce"]]}
    assert sent_picture(predicted, disturbed, S).alt != honest


def test_a_little_noise_does_not_change_the_words():
    assert sent_picture(*both(4, factor=1.0), S).alt == sent_picture(*both(4, factor=1.002), S).alt


def test_without_counters_it_says_so():
    predicted, _ = both(2, ["all_reduce"])
    picture = sent_picture(predicted, {"all_reduce": None}, S)
    assert "all_reduce, sent: predicted 1.00 on every rank; not measurable here." in picture.alt
    assert size(picture.image_bytes())[0] == WIDTH


def test_bad_arguments_are_named():
    predicted, measured = both(4)
    with pytest.raises(ValueError, match="give both the same labels"):
        sent_picture(predicted, {"all_reduce": None}, S)
    with pytest.raises(ValueError, match="give both the same labels"):
        sent_picture({}, {}, S)
    with pytest.raises(ValueError, match="4 ranks predicted and 2 measured"):
        sent_picture(predicted, {**measured, "all_reduce": measured["all_reduce"][:2]}, S)
    with pytest.raises(ValueError, match="total_bytes is 0"):
        sent_picture(predicted, measured, 0)
