"""Lab 06 as a whole: its instruments see what they claim to see."""

import re

import pytest

from tests.checks.answers import answers_in
from utils.checks.exercise import exercises_of
from utils.checks.lab06 import choices, choosing, crossing, grouping, reducing, rules
from utils.checks.lab06.grouping import Grouped
from utils.checks.lab06.places import Place
from utils.checks.lab06.training import FIRST, ON_FOUR, ON_SIX, ON_THE_SQUARE
from utils.checks.verdict import Mistake
from utils.runtime.recorder import Op
from utils.theory.traffic import collective_bytes, step_bytes

SIZE = 2400  # bytes of all gradients
PLACES = [Place(2, 2), Place(1, 4), Place(4, 1), Place(3, 2), Place(2, 3)]
each_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)


def op(kind, size, ranks):
    return Op(kind, size, collective_bytes(kind, size, len(ranks)), tuple(ranks), "", 1, None, None, 0.0, 1.0)


def issued(place, *operations):
    """By rank, operations given as (kind, bytes, which ranks of a rank)."""
    return [[op(kind, size, members(rank)) for kind, size, members in operations] for rank in range(place.ranks)]


def everyone(place):
    return lambda rank: range(place.ranks)


def two_levels(place):
    part = SIZE // place.per_node
    return ("reduce_scatter", SIZE, place.shard_ranks), ("all_reduce", part, place.replica_ranks)


def test_wrong_answers_are_many_and_differ():
    wrong = [answer for answer in answers_in("wrong_answers") if answer.exercise_id.startswith("06.")]
    assert len(wrong) >= 10
    assert {answer.exercise_id for answer in wrong} == {e.id for e in exercises_of("06")}


def test_right_answers_come_in_several_styles():
    right = [answer.exercise_id for answer in answers_in("right_answers") if answer.exercise_id.startswith("06.")]
    assert all(right.count(exercise.id) >= 3 for exercise in exercises_of("06"))


def test_training_is_tried_on_nodes_of_every_shape():
    tried = {trial.place for trial in (FIRST, *ON_THE_SQUARE, *ON_FOUR, *ON_SIX)}
    assert tried == set(PLACES) == set(reducing.PLACES) == set(grouping.PLACES)


@each_place
def test_rows_and_columns_meet_in_one_rank(place):
    for rank in range(place.ranks):
        row, column = place.shard_ranks(rank), place.replica_ranks(rank)
        assert set(row) & set(column) == {rank}
        assert (len(row), len(column)) == (place.per_node, place.nodes)
        assert {place.node_of(each) for each in row} == {place.node_of(rank)}


@each_place
def test_bytes_across_are_the_laws_of_theory(place):
    hsdp = step_bytes(SIZE, "hsdp", place.ranks, place.per_node, place.nodes, 1).across
    ddp = step_bytes(SIZE, "ddp", place.ranks, None, place.nodes, 1).across
    gathered = [("all_gather", SIZE, place.shard_ranks)] * 2
    sent = place.across(issued(place, *gathered, *two_levels(place)))
    assert sent == pytest.approx([hsdp] * place.nodes)
    assert place.law(SIZE) == pytest.approx(hsdp)
    among_all = issued(place, ("all_reduce", SIZE, everyone(place)))
    assert place.across(among_all) == pytest.approx([ddp] * place.nodes)


@each_place
def test_a_send_counts_where_it_leaves_the_node(place):
    def send(rank, peer):
        return Op("send", SIZE, SIZE, (0, peer), "", 1, peer, None, 0.0, 1.0)

    last = place.ranks - 1
    by_rank = [[] for _ in range(place.ranks)]
    by_rank[0] = [send(0, last)]
    assert place.across(by_rank)[0] == (SIZE if place.nodes > 1 else 0)


def verdict_on(place, *operations):
    with pytest.raises(Mistake) as raised:
        crossing.judge_crossing(place, issued(place, *operations), SIZE, place.law(SIZE))
    return str(raised.value)


def test_two_levels_are_no_mistake():
    for place in PLACES:
        crossing.judge_crossing(place, issued(place, *two_levels(place)), SIZE, place.law(SIZE))


def test_what_crosses_is_named():
    place = PLACES[0]
    scattered, reduced = two_levels(place)
    whole = ("all_reduce", SIZE, place.replica_ranks)
    assert "The all-reduce comes before the reduce-scatter" in verdict_on(place, whole, scattered)
    assert "an all-reduce among all 4 ranks" in verdict_on(place, ("all_reduce", SIZE, everyone(place)))
    assert "more than once" in verdict_on(place, scattered, reduced, reduced)
    across = ("reduce_scatter", SIZE, place.replica_ranks)
    assert "The reduce-scatter runs across nodes, in the group [0, 2]" in verdict_on(place, across, reduced)
    assert "a node sends 1.50 S to the others" in verdict_on(place, ("all_reduce", SIZE, everyone(place)))


def test_gathers_may_not_leave_the_node():
    place = PLACES[0]
    crossing.judge_gathers(place, issued(place, ("all_gather", SIZE, place.shard_ranks)))
    with pytest.raises(Mistake, match=r"all_gather of 2400 B in the group \[0, 2\]"):
        crossing.judge_gathers(place, issued(place, ("all_gather", SIZE, place.replica_ranks)))


ROW, COLUMN, ALL = (0, 1), (0, 2), ((0, 1), (2, 3), (0, 2), (1, 3))


def told(*grouped):
    with pytest.raises(Mistake) as raised:
        grouping.judge(PLACES[0], grouped)
    return str(raised.value)


def test_groups_that_do_not_match_are_told_apart():
    own = [[ranks for ranks in ALL if rank in ranks] for rank in range(4)]
    alone = tuple(tuple((ranks, False) for ranks in mine) for mine in own)
    assert "each rank makes only the groups that it is in" in told(Grouped(calls=alone))
    forth = tuple((ranks, False) for ranks in ALL)
    assert "as group 1 rank 0 makes [0, 1], rank 2 [1, 3]" in told(Grouped(calls=(forth, forth, forth[::-1], forth)))
    assert "transposed" in told(Grouped(shard=COLUMN, replica=ROW))
    assert "rank 0's replica group is [0, 1, 2, 3]" in told(Grouped(shard=ROW, replica=(0, 1, 2, 3)))


@pytest.mark.parametrize(
    ("said", "diagnosis"),
    [
        (None, "your function says nothing"),
        ("\nKeyError", "raises KeyError"),
        ("no", "one sentence with both numbers"),
        ("4 ranks do not fill nodes of 3", None),
    ],
)
def test_a_refusal_is_one_sentence_with_both_numbers(said, diagnosis):
    if diagnosis is None:
        grouping.judge_refusal(4, 3, said)
    else:
        with pytest.raises(Mistake, match=diagnosis):
            grouping.judge_refusal(4, 3, said)


def test_every_wrong_rule_is_told_from_the_right_one_and_from_the_others():
    answers = [[choices.best(case) for case in choices.CASES]]
    answers += [[rule(case) for case in choices.CASES] for rule, _ in rules.WRONG]
    assert len({tuple(map(str, each)) for each in answers}) == len(answers)
    for rule, words in rules.WRONG:
        with pytest.raises(Mistake, match=re.escape(words)):
            choosing.judge([rule(case) for case in choices.CASES])


def test_the_law_itself_is_followed_where_nothing_is_changed():
    assert [rules.Follow()(case) for case in choices.CASES] == [choices.best(case) for case in choices.CASES]
    for case in choices.CASES:
        for size in case.sizes:
            assert rules.Follow().seconds(case, size) == pytest.approx(case.seconds(size))


@pytest.mark.parametrize("found", ["8", [8], True, {}])
def test_no_choice_at_all_is_told(found):
    with pytest.raises(Mistake, match="return a number of ranks, or None"):
        choosing.judge([found] * len(choices.CASES))


def test_the_clusters_ask_for_every_kind_of_group():
    chosen = [(case, choices.best(case)) for case in choices.CASES]
    assert any(size is None for _, size in chosen)
    spans = [size / case.per_node for case, size in chosen if size]
    assert any(span == 1 for span in spans)
    assert any(1 < span < case.nodes for (case, _), span in zip([c for c in chosen if c[1]], spans, strict=True))
    assert any(size == case.nodes * case.per_node for case, size in chosen if case.nodes > 1)


def test_an_unknown_wrong_choice_is_told_with_both_times():
    got = [choices.best(case) for case in choices.CASES]
    got[0] = 64
    with pytest.raises(Mistake, match=r"a group of 8 keeps the link busy for 0\.\d+ s .*, yours for"):
        choosing.judge(got)
