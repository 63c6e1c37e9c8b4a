"""Lab 02 as a whole: its judges of order see what they claim to see."""

from collections import Counter
from types import SimpleNamespace

import pytest

from tests.checks.answers import answers_in
from utils.checks.lab02 import assigning, choosing, order
from utils.checks.lab02.traps import DEEP, OVERLAP_TRAPS, laid, size_of
from utils.checks.lab02.watching import ready_mark
from utils.checks.ranks import STEP, Seen
from utils.checks.verdict import Mistake
from utils.notebooks.files import ROOT, read_notebook

SOLUTION = read_notebook(ROOT / "solutions" / "02_buckets_and_overlap.ipynb")


def test_card_of_assign_buckets_shows_ddps_own_buckets():
    card = next(cell for cell in SOLUTION.cells if cell.id == "02-assign-buckets-card")
    assert f"`{assigning.reference([8, 6, 4, 6, 4, 2], 10)}`" in card.source


def test_wrong_answers_are_many_and_differ():
    wrong = [answer for answer in answers_in("wrong_answers") if answer.exercise_id.startswith("02.")]
    assert len(wrong) >= 12
    assert min(Counter(answer.exercise_id for answer in wrong).values()) >= 8


def test_buckets_of_the_traps_hold_every_trainable_parameter():
    for trap in OVERLAP_TRAPS:
        model = trap.build()
        buckets = laid(model)
        trainable = [p for p in model.parameters() if p.requires_grad]
        assert [id(p) for bucket in buckets for p in bucket] == [id(p) for p in reversed(trainable)]
    *full, last = [sum(map(size_of, bucket)) for bucket in laid(DEEP.build())]
    assert len(full) == 2 and last < min(full)


def test_named_mistakes_of_assigning_differ_from_each_other_and_from_ddp_on_the_first_case():
    sizes, cap = assigning.CASES[0]
    mistakes = assigning.named_mistakes(sizes, cap)
    assert len(mistakes) == 9
    assert tuple(map(tuple, assigning.reference(sizes, cap))) not in mistakes


def test_best_sizes_differ_between_the_cases_and_no_rule_of_thumb_fits_all():
    best = [set(choosing.best_sizes(case)) for case in choosing.CASES]
    assert set.intersection(*best) == set()


def record(*issued, dtype="float32", then=()):
    """A rank's record from (mark, bytes of an all-reduce), then from (mark, another kind, bytes)."""
    ops = [*((mark, "all_reduce", size) for mark, size in issued), *then]
    return Seen(None, tuple((mark, SimpleNamespace(kind=kind, bytes=size, dtype=dtype)) for mark, kind, size in ops))


NOTED = order.Noted(((10, 20), (30,), (5,)), (1, 0, 2, 3))
GOOD = ((ready_mark(0, 1), 30), (ready_mark(0, 2), 30), (ready_mark(0, 3), 5))


def judged(*issued, noted=NOTED, **more):
    order.judge_amount([record(*issued, **more)], 0, [noted])
    order.judge_overlap([record(*issued, **more)], 0, [noted])


def test_buckets_sent_as_soon_as_they_are_full_overlap():
    judged(*GOOD)


@pytest.mark.parametrize(
    ("issued", "diagnosis"),
    [
        ((), "nothing is all-reduced"),
        ([(f"{STEP}0, finish", 65)], "when backward ends no all-reduce has been issued"),
        ([(ready_mark(0, 3), 65)], "no all-reduce is issued before the last gradient is ready"),
        ([GOOD[0], (ready_mark(0, 3), 30), GOOD[2]], "sent too late: with 3 of 4 gradients ready"),
        ([(ready_mark(0, 0), 30), *GOOD[1:]], "sent before it is full: with 1 of 4 gradients ready"),
        ([("call 0", 30), *GOOD[1:]], "before backward begins"),
        (GOOD[:2], "the last bucket is never all-reduced"),
        (GOOD[:1], "the last 2 of 3 buckets are never all-reduced"),
        ([*GOOD, (f"{STEP}0, finish", 65)], "every bucket is to be sent once"),
        ([(ready_mark(0, 1), 10), (ready_mark(0, 1), 20), *GOOD[1:]], "4 operations carry 3 buckets"),
    ],
)
def test_order_of_events_names_the_mistake(issued, diagnosis):
    with pytest.raises(Mistake, match=diagnosis):
        judged(*issued)


def test_a_number_counts_once_whatever_its_type_but_a_short_one_is_refused():
    judged(*((mark, 2 * size) for mark, size in GOOD), dtype="float64")
    with pytest.raises(Mistake, match="the buckets travel as bfloat16"):
        judged(*((mark, size // 2) for mark, size in GOOD), dtype="bfloat16")


def test_only_a_barrier_may_follow_backward():
    judged(*GOOD, then=[(f"{STEP}0, finish", "barrier", 4)])
    with pytest.raises(Mistake, match="`finish` sends more, by broadcast"):
        judged(*GOOD, then=[(f"{STEP}0, finish", "broadcast", 30)])


def test_a_wait_during_backward_is_named_whenever_the_buckets_were_sent():
    with pytest.raises(Mistake, match="backward stands still"):
        judged(*GOOD, noted=order.Noted(NOTED.buckets, NOTED.order, (None,)))


def test_a_bucket_behind_one_that_is_not_full_waits():
    late_first = order.Noted(((10, 20), (30,), (5,)), (2, 1, 3, 0))
    judged((ready_mark(0, 3), 30), (ready_mark(0, 3), 30), (ready_mark(0, 3), 5), noted=late_first)
