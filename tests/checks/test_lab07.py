"""Lab 07 as a whole: its instruments see what they claim to see."""

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.checks.answers import answers_in
from utils.checks.exercise import exercises_of
from utils.checks.lab07 import feeding, intervals, picking, resuming, sharing, straggling
from utils.checks.lab07.attempts import Attempt, Scenario
from utils.checks.lab07.elsewhere import values_elsewhere
from utils.checks.lab07.job import Data, Snapshot
from utils.checks.lab07.timelines import REDUCE, STORIES
from utils.checks.verdict import Mistake
from utils.runtime.jobs.faults import Kill
from utils.theory import algorithms
from utils.theory import feed as theory_of_feed
from utils.theory.traffic import collective_bytes


def told(judge, *arguments):
    with pytest.raises(Mistake) as raised:
        judge(*arguments)
    return str(raised.value)


def test_wrong_answers_are_many_and_differ():
    wrong = [answer for answer in answers_in("wrong_answers") if answer.exercise_id.startswith("07.")]
    assert len(wrong) >= 20
    assert {answer.exercise_id for answer in wrong} == {e.id for e in exercises_of("07")}


def test_right_answers_come_in_several_styles():
    right = [answer.exercise_id for answer in answers_in("right_answers") if answer.exercise_id.startswith("07.")]
    assert all(right.count(exercise.id) >= 2 for exercise in exercises_of("07"))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_timeline_is_that_of_its_story(story):
    timeline = story.timeline()
    everyone = tuple(range(story.ranks))
    ends = [[op for op in ops if op.ranks == everyone and op.kind == "all_reduce"] for ops in timeline.ops]
    assert [len(each) for each in ends] == [len(story.steps)] * story.ranks
    for step in zip(*ends, strict=True):
        last = max(op.issued_at for op in step)
        assert {op.completed_at for op in step} == ({None} if story.nccl else {last + REDUCE})
    assert all(a.issued_at <= b.issued_at for ops in timeline.ops for a, b in pairwise(ops))


def test_stragglers_are_of_every_kind():
    found = [story.wanted for story in STORIES]
    assert None in found
    assert len({each[0] for each in found if each}) == 4  # no rank is right by chance
    assert any(story.nccl for story in STORIES) and any(story.chatter for story in STORIES)


def test_every_wrong_straggler_is_told_by_its_own_words():
    straggling.judge([story.wanted for story in STORIES])
    for pick, words in straggling.WRONG_RANK:
        assert told(straggling.judge, [(pick(story), 0.1) for story in STORIES]) == words
    for gain, words in straggling.WRONG_GAIN:
        got = [story.wanted and (story.straggler, gain(story, story.straggler)) for story in STORIES]
        assert told(straggling.judge, got) == words


def test_an_unknown_wrong_straggler_is_told_with_its_counts():
    got = [story.wanted for story in STORIES]
    assert "and no rank comes last in more than half" in told(straggling.judge, [*got[:-1], (1, 0.01)])
    assert "rank 2 comes last in 9 of 9 steps, and you name nobody" in told(straggling.judge, [None, *got[1:]])
    assert re.search(r"rank 2 is right, and comes 2\d\.\d ms after", told(straggling.judge, [(2, 0.05), *got[1:]]))


def test_every_wrong_interval_is_told_by_its_own_words():
    intervals.judge([(cluster.best, cluster.lost(cluster.best)) for cluster in intervals.CLUSTERS])
    for rule, words in intervals.WRONG_EVERY:
        assert told(intervals.judge, [(rule(cluster), 0.1) for cluster in intervals.CLUSTERS]) == words
    for share, words in intervals.WRONG_SHARE:
        got = [(cluster.best, share(cluster, cluster.best)) for cluster in intervals.CLUSTERS]
        assert told(intervals.judge, got) == words


@pytest.mark.parametrize("cluster", intervals.CLUSTERS, ids=lambda cluster: cluster.words)
def test_the_best_interval_is_the_best_of_all(cluster):
    rivals = range(1, 3 * cluster.best + 3)
    assert min(rivals, key=cluster.avoidable) == cluster.best
    assert cluster.exactly(cluster.best) == pytest.approx(cluster.lost(cluster.best), rel=0.05)


def test_an_interval_is_a_whole_number_of_steps():
    got = [(cluster.best, cluster.lost(cluster.best)) for cluster in intervals.CLUSTERS]
    assert "1 step is the least" in told(intervals.judge, [(0, 0.1), *got[1:]])
    assert "3248.5 is no whole number of steps" in told(intervals.judge, [(3248.5, 0.1), *got[1:]])
    assert sorted(cluster.best for cluster in intervals.CLUSTERS)[:3] == [1, 2, 2]
    for rounded, words in ((math.floor, "rounded down"), (math.ceil, "rounded up")):
        rounded_so = [(max(1, rounded(intervals._young_steps(cluster))), 0.1) for cluster in intervals.CLUSTERS]
        assert words in told(intervals.judge, rounded_so)
    assert "writing and doing again take" in told(intervals.judge, [(100, 0.1), *got[1:]])


def test_every_wrong_choice_is_told_by_its_own_words():
    asked = picking.questions()
    picking.judge(asked, [picking.right(fabric, size)[0] for fabric, size in asked])
    for numbers, words in picking.WRONG:
        got = [picking._faster(numbers(fabric).seconds(fabric, size))[0] for fabric, size in asked]
        assert told(picking.judge, asked, got) == words


@pytest.mark.parametrize("fabric", picking.FABRICS, ids=lambda fabric: f"{fabric.nodes} x {fabric.per_node}")
def test_the_law_of_the_choice_is_that_of_theory(fabric):
    law = picking.law(fabric)
    assert law.ring_bytes == pytest.approx(collective_bytes("all_reduce", 1, fabric.ranks))
    tree = next(
        each
        for each in algorithms.choices(fabric.ranks, fabric.nodes, fabric.goodput)
        if (each.algorithm, each.protocol) == ("tree", "Simple")
    )
    assert law.tree_bytes / fabric.goodput == pytest.approx(1 / tree.rate)
    at = picking.crossover(fabric)
    if at > 1:
        assert picking._faster(law.seconds(fabric, 0.9 * at)) == ("tree",)
        assert picking._faster(law.seconds(fabric, 1.1 * at)) == ("ring",)


def test_every_wrong_feed_is_told_by_its_own_words():
    feeding.judge([job.wanted for job in feeding.JOBS])
    for rule, words in feeding.WRONG_RATE:
        assert told(feeding.judge, [(rule(job), 1.0) for job in feeding.JOBS]) == words
    for rule, words in feeding.WRONG_STEP:
        assert told(feeding.judge, [(job.wanted[0], rule(job)) for job in feeding.JOBS]) == words
    whole = [(job.tokens * job.wanted[0], job.wanted[1]) for job in feeding.JOBS]
    assert "of a whole sample, not of a token" in told(feeding.judge, whole)
    assert "the two are swapped" in told(feeding.judge, [job.wanted[::-1] for job in feeding.JOBS])


@pytest.mark.parametrize("job", feeding.JOBS, ids=lambda job: job.name)
def test_the_law_of_the_feed_is_that_of_theory(job):
    rate, step = job.wanted
    assert step == theory_of_feed.step_with_loading(job.compute, job.batch * job.sample, job.store, job.gpus)
    slow = rate > job.store
    assert slow == (step > job.compute)


def test_stores_ask_for_remainders_and_for_none():
    assert {store.count % len(store.readers) > 0 for store in sharing.STORES} == {True, False}
    assert any(store.count // store.ranks != store.each * store.workers for store in sharing.STORES)


def shares(store, *orders):
    """What readers take who share out these orders, one for each epoch."""
    readers = len(store.readers)
    return tuple(
        {reader: tuple(order[place::readers])[: store.each] for place, reader in enumerate(store.readers)}
        for order in orders
    )


def test_shares_are_judged_one_thing_at_a_time():
    store = sharing.Store(7, 2, 1)
    a, b, c = store.shards, store.shards[::-1], store.shards[3:] + store.shards[:3]
    good = shares(store, a, b, c)
    sharing.judge(store, sharing.Read(good, good))
    assert "random state" in told(sharing.judge, store, sharing.Read(good, shares(store, b, a, c)))
    same = shares(store, a, a, a)
    assert "the same order in every epoch" in told(sharing.judge, store, sharing.Read(same, same))
    left = shares(store, a, a[2:4] + a[:2] + a[4:], a[4:6] + a[:4] + a[6:])
    assert "shard-006 is left out in every epoch" in told(sharing.judge, store, sharing.Read(left, left))
    twice = ({(0, 0): ("shard-000", "shard-000"), (1, 0): ("shard-001", "shard-002")},)
    assert "read twice by rank 0, worker 0" in told(sharing.judge, store, sharing.Read(twice, twice))
    few = ({(0, 0): ("shard-000",), (1, 0): ("shard-001",)},)
    assert "each reader gets 1 shards, and there are 3" in told(sharing.judge, store, sharing.Read(few, few))
    store = sharing.Store(10, 2, 1)
    again = shares(store, store.shards, store.shards[::-1], store.shards)
    assert "epochs 0 and 2 have the same order" in told(sharing.judge, store, sharing.Read(again, again))


@pytest.mark.parametrize(
    "said", ["(5, 6)", "15 shards for 16 readers", "5 shards,\nand 6 readers", "", "readers, 6, are many"]
)
def test_a_refusal_is_a_sentence_with_both_numbers(said):
    assert "one sentence with both numbers, 5 and 6" in told(sharing.judge_refusal, said)
    sharing.judge_refusal("5 shards, 6 readers")


def test_as_many_shards_as_readers_are_enough():
    assert any(store.count == len(store.readers) for store in sharing.STORES)
    refused = sharing.Read(refused="6 shards are too few for 6 readers")
    assert "6 shards are enough for 6 readers" in told(sharing.judge, sharing.Store(6, 3, 2), refused)


def test_shares_elsewhere_are_those_of_the_ranks():
    store = sharing.STORES[0]
    there = values_elsewhere(lambda shards, epoch, *place: (epoch, place), store.calls[:3])
    assert there == [(0, (0, 4, 0, 2)), (0, (0, 4, 1, 2)), (0, (1, 4, 0, 2))]
    here = tuple(hash(f"shard {number}") for number in range(3))
    assert values_elsewhere(lambda *_: tuple(hash(f"shard {number}") for number in range(3)), [()]) != [here]
    with pytest.raises(Mistake, match="fails: ZeroDivisionError"):
        values_elsewhere(lambda: 1 / 0, [()])


def test_a_place_in_the_data_is_each_ranks_own_and_can_be_taken_up():
    data = [Data(rank) for rank in range(3)]
    for each in data:
        for _ in range(9):
            next(each)
    places = [tuple(each.state_dict().values()) for each in data]
    assert len(set(places)) > 1
    for rank, each in enumerate(data):
        other = Data(rank)
        other.load_state_dict(each.state_dict())
        assert next(other).equal(next(each)) and other.drawn == each.drawn
    assert len({each.drawn for each in data}) == 3


def moment(rank, step):
    """A rank before its step, told apart from all others."""
    own = 10.0 * rank + step
    return Snapshot(
        step, (float(step), 1.0), (step / 8,), step, 0.02 * 0.8**step, step, (int(own),), (rank, step), str(own)
    )


SCENARIO = Scenario("rank 1 killed after 6 steps", 2, (Kill(1, 6),), steps=9, every=4)
WANTED = Attempt(
    tuple(tuple(moment(rank, s) for s in range(9)) for rank in range(2)), (), (), (), final=((9.0,), (9.0,))
)
BEFORE = Attempt((), (tuple(range(7)),) * 2, (), ("checkpoint.pt",), died=Kill(1, 6))


def after(first=4, final=((9.0,), (9.0,)), ranks=(0, 1), **changed):
    """An attempt that goes on at step `first`, in each of `ranks` with some of its state changed."""
    snapshots = [[moment(rank, s) for s in range(first, 9)] for rank in range(2)]
    for rank in ranks:
        snapshots[rank][0] = replace(snapshots[rank][0], **changed)
    return Attempt(tuple(map(tuple, snapshots)), (tuple(range(first, 9)),) * 2, (), (), final=final)


def test_a_restart_in_the_right_state_is_no_mistake():
    resuming.judge_disturbed([BEFORE, after()], WANTED, SCENARIO)
    resuming.judge_disturbed([after(0)], WANTED, SCENARIO)  # who was to die while it wrote, and writes nothing


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (after(1), "5 steps are lost, and at most 4"),
        (after(0), "There is a checkpoint (checkpoint.pt), and it is not used"),
        (after(weights=(0.0, 1.0)), "with the weights of the beginning"),
        (after(weights=(3.0, 1.0)), "the weights after 3 steps: 1 step is left out"),
        (after(weights=(6.0, 1.0)), "the weights after 6 steps: 2 steps are done twice"),
        (after(weights=(0.5, 1.0)), "weights that it never had"),
        (after(moments=()), "(it has none)"),
        (after(moments=(0.25,)), "the optimizer's moments are not those of step 4"),
        (after(optimizer_steps=1), "Adam has counted 1 steps where 4 are done"),
        (after(schedule=0), "the schedule stands at step 0, and 4 are done: the rate, right for now"),
        (after(rate=0.02), "0.02, and 4 are done (0.00819): `schedule.state_dict()` belongs into the checkpoint"),
        (after(drawn=(0,), ranks=(0,)), "rank 0 begins its data anew"),
        (after(drawn=(77,), place=(0, 4), ranks=(1,)), "rank 1 goes on at rank 0's place in the data"),
        (after(drawn=(15,), ranks=(1,)), "rank 1 takes the batch of step 5 at step 4"),
        (after(drawn=(77,), ranks=(1,)), "its place in the data is not restored"),
        (after(random="0.0", ranks=(0,)), "rank 0's random state is that of the beginning"),
        (after(random="4.0", ranks=(1,)), "rank 1 goes on with rank 0's random state"),
        (after(random="?", ranks=(1,)), "rank 1's random state at step 4 is not the one"),
        (after(final=((9.0,), (9.1,))), "rank 1's final weights differ"),
    ],
)  # fmt: skip
def test_what_a_restart_forgets_is_named(attempt, words):
    assert words in told(resuming.judge_disturbed, [BEFORE, attempt], WANTED, SCENARIO)


def test_checkpoints_of_different_steps_are_named():
    torn = replace(after(), reached=(tuple(range(4, 9)), tuple(range(3, 9))))
    assert "rank 0 goes on from step 4, another from 3" in told(
        resuming.judge_disturbed, [BEFORE, torn], WANTED, SCENARIO
    )


def test_half_a_file_is_named():
    cannot = Attempt(((), ()), ((), ()), (), (), error=Mistake("raises RuntimeError: PytorchStreamReader failed"))
    dead = replace(BEFORE, died=Kill(1, 6, saving=True), half="checkpoint.pt")
    assert "(checkpoint.pt) is half written, and the old one was gone already" in told(
        resuming.judge_disturbed, [dead, after(0)], WANTED, SCENARIO
    )
    assert "There is a checkpoint (old.pt), and it is not used" in told(
        resuming.judge_disturbed, [replace(dead, files=("checkpoint.pt", "old.pt")), after(0)], WANTED, SCENARIO
    )
    assert "the only checkpoint is half written" in told(resuming.judge_disturbed, [dead, cannot], WANTED, SCENARIO)
    assert "after the restart raises RuntimeError" in told(resuming.judge_disturbed, [BEFORE, cannot], WANTED, SCENARIO)
