"""Lab 03 as a whole: the cases and judges are what they claim to be."""

import pytest
import torch

from utils.checks import check
from utils.checks.exercise import exercises_of
from utils.checks.lab03 import choosing, fitting, pipelining
from utils.checks.lab03.averaging import Large, cases_of
from utils.checks.lab03.bandwidth import questions
from utils.checks.lab03.cases import Case, ring_cases
from utils.checks.lab03.values import describe
from utils.notebooks.answers import load_answers
from utils.runtime.latency import late_sends
from utils.theory.links import fit_alpha_beta


@pytest.mark.parametrize("ranks", range(2, 9))
def test_sums_are_exact_in_the_tensors_type_and_cases_have_names_of_their_own(ranks):
    cases = ring_cases(ranks)
    assert len({case.name for case in cases}) == len(set(cases))
    assert any(case.length < ranks or ranks == 2 for case in cases)
    assert any(case.length % ranks for case in cases) and not cases[0].length % ranks
    for case in cases:
        exact = sum(start.double() if case.dtype.is_floating_point else start.long() for start in case.starts())
        assert torch.equal(case.total().to(exact.dtype), exact), case.name
        assert case.total().dtype == case.dtype


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_smaller_types_would_round_the_numbers_of_every_case_that_tells_types_apart(ranks):
    for case in ring_cases(ranks):
        if case.dtype == torch.float32 and case.length > 1:
            assert not case.start(0).half().isfinite().any()
            assert not case.start(0).bfloat16().float().equal(case.start(0))
        if case.dtype in (torch.float64, torch.int32, torch.int64) and not case.who:
            assert not case.start(0).float().to(case.dtype).equal(case.start(0))


def test_means_fit_half_precision_where_sums_do_not():
    for case in cases_of(2):
        if isinstance(case, Large) and case.dtype == torch.float16:
            assert not case.total().isfinite().any()
            assert all(start.isfinite().all() for start in case.starts())


def test_a_wrong_sum_says_whose_numbers_are_in_it():
    case = Case(16, 4, torch.float64, who=True)
    want = case.total()
    sums = [case.start(rank) for rank in range(4)]
    assert describe(sums[0] + sums[3], want, case) == "lacks the numbers of ranks 1, 2"
    assert describe(want + sums[1], want, case) == "has the numbers of rank 1 more than once"
    assert describe(sums[2], want, case) == "holds rank 2's numbers alone"
    assert describe(want / 4, want, case) == "holds the average, 4 times less than the sum"


def test_published_figures_are_among_those_asked_and_agree_with_what_was_printed():
    assert sum("on " in question.place for question in questions()) > 50


def test_the_fit_that_is_asked_for_can_be_reached_and_a_plain_one_misses():
    for alpha, beta in fitting.LINKS:
        fitted = fit_alpha_beta(fitting.points(alpha, beta, fitting.NOISE))
        assert abs(fitted.alpha / alpha - 1) < fitting.WITHIN and abs(fitted.beta / beta - 1) < fitting.WITHIN
        sizes, times = torch.tensor(fitting.points(alpha, beta, fitting.NOISE), dtype=torch.float64).T
        columns = torch.stack((torch.ones_like(sizes), sizes), dim=1)
        plain = torch.linalg.lstsq(columns, times[:, None]).solution[0].item()
        assert abs(plain / alpha - 1) > fitting.WITHIN


def test_both_algorithms_win_somewhere_on_each_link():
    for link in choosing.LINKS:
        assert {q.wanted for q in choosing.questions() if q.link == link} >= {"ring", "tree"}


def test_pieces_are_asked_for_in_every_kind():
    cases = pipelining.cases_of(4)
    assert {case.pieces for case in cases} >= {1, 3, 4, 5}
    assert any(case.length < case.pieces * case.ranks for case in cases)


@pytest.mark.parametrize("seconds", [-1, float("nan"), "5ms", True])
def test_a_latency_that_is_no_time_is_refused_before_anything_changes(seconds):
    from torch._C._distributed_c10d import ProcessGroup

    before = ProcessGroup.send
    with pytest.raises((ValueError, TypeError)), late_sends(seconds):
        pass
    assert ProcessGroup.send is before


@pytest.mark.long
@pytest.mark.parametrize("exercise", exercises_of("03"), ids=lambda exercise: exercise.id)
def test_the_solution_passes_twenty_times(exercise):
    answer = getattr(load_answers("03", "solutions"), exercise.name)
    assert {check(exercise.id, answer).state for _ in range(20)} == {"passed"}
