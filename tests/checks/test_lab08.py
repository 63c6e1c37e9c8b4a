"""Lab 08 as a whole: its laws are theory's, its wrong rules differ, its record and its points say what they claim."""

import re
from types import SimpleNamespace

import pytest

from tests.checks.answers import answers_in
from utils.checks.exercise import exercises_of
from utils.checks.lab08 import diagnosing, laws, recommending, remembering, sending, timing
from utils.checks.lab08.job import STRATEGIES, Job, Step
from utils.checks.lab08.laws import JOBS, covered, expected
from utils.checks.lab08.recorded import step_times
from utils.checks.lab08.score import Score, points
from utils.checks.shut import AsksTheCheck, answers_to
from utils.checks.verdict import Mistake
from utils.runtime.recorder import Op
from utils.runtime.run import Timeline

ASKED = [(job, strategy) for job in JOBS for strategy in STRATEGIES]
OF_NUMBERS = [(remembering, laws.memory), (sending, laws.sent), (timing, laws.seconds)]


def told(judge, *arguments):
    with pytest.raises(Mistake) as raised:
        judge(*arguments)
    return str(raised.value)


def test_wrong_answers_are_many_and_differ():
    wrong = [answer for answer in answers_in("wrong_answers") if answer.exercise_id.startswith("08.")]
    assert len(wrong) >= 40
    assert {answer.exercise_id for answer in wrong} == {e.id for e in exercises_of("08")}


def test_right_answers_come_in_several_styles():
    right = [answer.exercise_id for answer in answers_in("right_answers") if answer.exercise_id.startswith("08.")]
    assert all(right.count(exercise.id) >= 2 for exercise in exercises_of("08"))


@pytest.mark.parametrize(("module", "law"), OF_NUMBERS, ids=lambda each: getattr(each, "__name__", ""))
def test_every_wrong_rule_is_told_by_its_own_words(module, law):
    module.judge([law(*each) for each in ASKED])
    for rule, words in module.WRONG:
        assert told(module.judge, [rule(*each) for each in ASKED]) == words


def test_every_wrong_recommendation_is_told_by_its_own_words():
    recommending.judge([recommending.best(question) for question in recommending.QUESTIONS])
    for rule, words in recommending.WRONG:
        assert told(recommending.judge, [rule(question) for question in recommending.QUESTIONS]) == words


def test_every_wrong_diagnosis_is_told_by_its_own_words():
    diagnosing.judge([diagnosing.diagnosis(*story) for story in diagnosing.STORIES])
    for rule, words in diagnosing.WRONG:
        assert told(diagnosing.judge, [rule(*story) for story in diagnosing.STORIES]) == words


def test_a_number_that_no_rule_gives_is_told_beside_the_right_one():
    numbers = [laws.memory(*each) for each in ASKED]
    assert "ddp on 2 nodes of 2" in told(remembering.judge, [numbers[0] * 1.5, *numbers[1:]])
    pairs = [laws.sent(*each) for each in ASKED]
    assert "a node sends across 3 S, and it is 1.5 S" in told(
        sending.judge, [(pairs[0][0], 2 * pairs[0][1]), *pairs[1:]]
    )
    times = [laws.seconds(*each) for each in ASKED]
    assert re.search(r"your answer is .* of which 135 ms are compute", told(timing.judge, [9.0, *times[1:]]))
    chosen = [recommending.best(question) for question in recommending.QUESTIONS]
    assert "it does not fit" in told(recommending.judge, [*chosen[:4], "ddp", *chosen[5:]])
    assert "fsdp fits: it holds" in told(recommending.judge, [*chosen[:4], None, *chosen[5:]])


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.nodes}x{job.per_node}")
def test_the_rings_by_hand_and_the_simulation_agree(job):
    wanted = {
        "ddp": timing.overlapped(job),
        "zero1": timing.waited(job, 2),
        "fsdp": timing.waited(job, 3),
        "hsdp": timing.two_levels(job),
    }
    assert {s: laws.seconds(job, s) for s in STRATEGIES} == pytest.approx(wanted)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.nodes}x{job.per_node}")
def test_where_everybody_waits_the_time_outside_collectives_is_compute(job):
    for strategy in ("zero1", "fsdp", "hsdp"):
        assert expected(job, strategy).alone == pytest.approx(timing.compute(job), rel=1e-6, abs=1e-9)
    assert expected(job, "ddp").alone < timing.compute(job)


def test_the_questions_ask_for_every_answer():
    chosen = [recommending.best(question) for question in recommending.QUESTIONS]
    assert set(chosen) == {*STRATEGIES, None}


def test_the_stories_have_every_cause_and_every_strategy():
    found = [diagnosing.diagnosis(*story) for story in diagnosing.STORIES]
    assert {cause for _, cause in found} == set(diagnosing.CAUSES)
    assert {strategy for strategy, _ in found} == set(STRATEGIES)


@pytest.mark.parametrize(
    ("error", "given"),
    [(0.0, 3), (0.05, 3), (-0.05, 3), (0.051, 2), (0.10, 2), (-0.2, 1), (0.25, 1), (0.26, 0), (9, 0)],
)
def test_points_are_given_by_band(error, given):
    assert points(1000 * (1 + error), 1000) == given


def test_a_score_adds_up_and_says_what_of():
    score = Score("A run", (("a", 1.0, 1.0, "1 s", "1 s"), ("b", 2.0, 1.0, "2 s", "1 s")))
    assert (score.points, score.most) == (3, 6)
    assert "A run: 3 of 6 points" in repr(score) and "+100.0%" in repr(score)
    assert "3 of 6 points" in score._repr_html_()


def op(kind, begin, end, ranks=(0, 1), internal=False):
    return Op(kind, 0, 0, ranks, "", 1, None, None, begin, end, internal=internal)


def run_of(*by_rank):
    return SimpleNamespace(world_size=len(by_rank), timeline=Timeline(tuple(map(tuple, by_rank))))


def test_a_step_is_that_of_the_slowest_rank_without_the_first():
    def steps(late):
        barriers = [op("barrier", t, t + 0.1) for t in (0.0, 10.0, 13.0 + late)]
        busy = [op("all_reduce", 1.0, 9.0), op("all_gather", 10.5, 11.5), op("reduce_scatter", 11.0, 12.0)]
        return sorted([*barriers, *busy, op("barrier", 11.1, 11.2, internal=True)], key=lambda each: each.issued_at)

    seconds, communicating = step_times(run_of(steps(0.0), steps(1.0)), 2)
    assert seconds == pytest.approx(3.9)
    assert communicating == pytest.approx(1.5)


def test_spans_that_overlap_count_once():
    assert covered([(0, 2), (1, 3), (5, 6), (5.2, 5.4)]) == pytest.approx(4)
    assert covered([]) == 0


def test_what_was_not_asked_for_is_told():
    assert "return a pair of bytes" in told(sending.judge, [None] * len(ASKED))
    assert "return a pair" in told(diagnosing.judge, ["ddp"] * len(diagnosing.STORIES))
    assert "the causes bytes, link, alone" in told(diagnosing.judge, [("ddp", "copies")] * len(diagnosing.STORIES))


@pytest.mark.parametrize("no_number", [-1, 0, float("nan"), float("inf")])
@pytest.mark.parametrize(("module", "law"), OF_NUMBERS, ids=lambda each: getattr(each, "__name__", ""))
def test_what_cannot_be_is_told_before_any_law(module, law, no_number):
    def answer(job, strategy):
        return (no_number, no_number) if module is sending else no_number

    message = told(module.verify, answer)
    if no_number or module is not sending:  # 0 bytes are sent where there is one rank
        assert message.startswith(f"your function returns {no_number};")


def test_points_tell_two_errors_apart_that_round_alike():
    rows = tuple((name, p, 1.0, "", "") for name, p in (("a", 0.904), ("b", 1.104), ("c", 0.9999)))
    assert [cells[3:] for cells in Score("A run", rows).cells()] == [("-9.6%", "2"), ("+10.4%", "1"), ("+0.0%", "3")]


def test_numbers_that_differ_are_never_told_as_the_same():
    for module, law in OF_NUMBERS:
        found = [law(*each) for each in ASKED]
        nearly = [(each[0] * 1.0002, each[1]) if isinstance(each, tuple) else each * 1.0002 for each in found]
        numbers = re.search(
            r"(?:answer is|a rank sends) (\S+) .*(?:holds|it is|step takes) ([\d.]*\d)", told(module.judge, nearly)
        )
        assert numbers[1] != numbers[2], numbers[0]


def test_laws_are_shut_while_an_answer_runs_and_open_afterwards():
    with pytest.raises(AsksTheCheck, match="`memory` is what this check compares with"):
        answers_to([(JOBS[0], "ddp")], laws.memory)
    assert answers_to([(1,), (2,)], lambda each: each + 1) == [2, 3]
    assert laws.memory(JOBS[0], "ddp") == 16 * sum(JOBS[0].parameters)


def test_the_word_none_is_no_answer():
    words = ["None" if (best := recommending.best(q)) is None else best for q in recommending.QUESTIONS]
    assert told(recommending.judge, words).endswith("where nothing fits return None itself.")


def test_a_step_has_two_parts():
    assert Step(1, 2, 10.0, 4.0).alone == 6.0
    job = Job((10, 20), (0.1, 0.2), 1, 2, 1e9, 1e9, 0.0)
    assert (job.ranks, job.sizes, job.words) == (2, (40, 80), "1 node of 2, 2 units, 30 numbers")
