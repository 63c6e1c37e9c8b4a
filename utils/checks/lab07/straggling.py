"""07.straggler: the rank that the others wait for, and what a step would gain without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from statistics import mean, median
from typing import Any

from utils.checks.lab07.timelines import REDUCE, STORIES, Story
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to
from utils.checks.verdict import Mistake, with_article

NEEDS_THE_END = "the end of an operation"  # that it has none made the answer fail
NEAR = 0.10  # of the seconds: a mean of all but a pause is as good as a median

Pick = Callable[[Story], "int | None"]
Gain = Callable[[Story, int], float]


def _most(score: Callable[[Story, int], float]) -> Pick:
    return lambda story: max(range(story.ranks), key=lambda rank: score(story, rank))


def _waits(story: Story, rank: int) -> float:
    """Seconds for which a rank waits, in all steps."""
    return sum(max(step) - step[rank] for step in story.steps)


def _last_often(story: Story, rank: int) -> int:
    return sum(late > 0 for late in story.late(rank))


def _last_in_half(story: Story) -> int | None:
    """The rank that comes last most often, if that is in half of the steps at least."""
    rank = _most(_last_often)(story)
    return rank if 2 * _last_often(story, rank) >= len(story.steps) else None


# A rule that somebody may have followed, for the rank -> what is wrong with it.
WRONG_RANK: tuple[tuple[Pick, str], ...] = (
    (
        _most(_waits),
        "you name the rank that comes first and waits longest: it is ready early. The others wait for the one that "
        "issues its all-reduce last, and that one hardly waits at all.",
    ),
    (
        _most(lambda story, rank: -_waits(story, rank)),
        "one long pause decides, or a first step that warms up: a rank that is late once is no straggler. Count in how "
        "many steps a rank comes last.",
    ),
    (
        _most(lambda story, rank: story.steps[0][rank]),
        "you look at the first step alone, in which ranks warm up. Count in how many steps a rank comes last.",
    ),
    (
        _most(lambda story, rank: story.steps[-1][rank]),
        "you look at the last step alone. Count in how many steps a rank comes last.",
    ),
    (
        _most(_last_often),
        "you always name one: if no rank comes last in more than half of the steps, nobody sets the pace; return None.",
    ),
    (
        _last_in_half,
        "you name a rank that comes last in half of the steps: it must be in *more* than half; else return None.",
    ),
)


def _others(story: Story, rank: int, of: Callable[[Sequence[float]], float]) -> list[float]:
    """By step: how much later the rank is than some figure of the others."""
    return [step[rank] - of([s for r, s in enumerate(step) if r != rank]) for step in story.steps]


# The same for the seconds, where every rank is right.
WRONG_GAIN: tuple[tuple[Gain, str], ...] = (
    (
        lambda s, r: 1e3 * median(s.late(r)),
        "the time is in milliseconds; return seconds.",
    ),
    (
        lambda s, r: -median(s.late(r)),
        "the time is negative: the straggler comes *after* the others.",
    ),
    (
        lambda s, r: median(_others(s, r, min)),
        "the time is counted from the first rank. Without the straggler the next slowest sets the pace: count from the "
        "last of the others.",
    ),
    (
        lambda s, r: median(_others(s, r, mean)),
        "the time is counted from the mean of the others. The last of them would set the pace then.",
    ),
    (
        lambda s, r: median(_others(s, r, median)),
        "the time is counted from the median of the others. The last of them would set the pace then.",
    ),
    (
        lambda s, r: sum(max(0.0, late) for late in s.late(r)),
        "the time is the sum over all steps; return what one step would gain, the median over the steps.",
    ),
    (
        lambda s, r: sum(s.late(r)),
        "the time is the sum over all steps; return what one step would gain, the median over the steps.",
    ),
    (
        lambda s, r: mean(s.late(r)),
        "the time is the mean over the steps, and one long pause of another rank, or a first step, decides it. Take "
        "the median.",
    ),
    (
        lambda s, r: median(late for late in s.late(r) if late > 0),
        "the time is the median over those steps alone in which the straggler comes last; where it comes early, a step "
        "would gain nothing: take the median over all steps.",
    ),
    (
        lambda s, r: max(s.late(r)),
        "the time is that of the worst step; return the median over the steps.",
    ),
    (
        lambda s, r: median(step[r] for step in s.steps),
        "the time is all of the straggler's compute; return by how much it comes later than the last of the others.",
    ),
    (
        lambda s, r: median(max(step) for step in s.steps) + REDUCE,
        "the time is the whole step; return by how much the straggler comes later than the last of the others.",
    ),
)


def verify(answer: Any) -> str:
    seen = run_cases(answer, {story.name: partial(observe, number) for number, story in enumerate(STORIES)}, 1)
    judge([seen[story.name][0].value for story in STORIES])
    return (
        f"in {len(STORIES)} timelines it is the rank that comes last in more than half of the steps, with the median "
        "of its delay within 10%: with pauses and long first steps of others, two slow ranks, other operations "
        "beside, no `completed_at`, late in little more than half; and None where it is half, or all are late in turn."
    )


def observe(number: int, answer: Any, mark: Mark) -> Any:
    """In a rank: what the answer says of one timeline, numbers made plain."""
    story = STORIES[number]
    try:
        (got,) = answers_to([(story.timeline(),)], answer)
    except TypeError:
        if not story.nccl:
            raise
        return NEEDS_THE_END
    if isinstance(got, tuple | list) and len(got) == 2:
        try:
            if isinstance(got[1], str):
                raise TypeError
            return index(got[0]), float(got[1])  # a rank is a whole number, of whatever type
        except (TypeError, ValueError):
            return f"a pair of {type(got[0]).__name__} and {type(got[1]).__name__}"
    if got is None:
        return None
    return f"the number {got}" if isinstance(got, int | float) else with_article(type(got).__name__)


def judge(got: Sequence[tuple[int, float] | str | None]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first timeline that is wrong."""
    if all(each is None for each in got):
        raise Mistake("your function returns nothing, for every timeline; return `(rank, seconds)`.")
    for each in got:
        if isinstance(each, str) and each != NEEDS_THE_END:
            raise Mistake(
                f"your function returns {each}; return the pair `(rank, seconds)`, a whole number and seconds, or None."
            )
    answered = [(story, each) for story, each in zip(STORIES, got, strict=True) if each != NEEDS_THE_END]
    named = [(story, None if each is None else each[0]) for story, each in answered]
    if any(rank != story.straggler for story, rank in named):
        _wrong_rank(named)
    if len(answered) < len(got):
        raise Mistake(
            "your function needs `completed_at`, which is None under NCCL: the CPU does not see the end there. When "
            "each rank has come is in `issued_at`."
        )
    pairs = [(story, each) for story, each in answered if each is not None]
    if all(_near(seconds, story.wanted[1]) for story, (_, seconds) in pairs):
        return
    for gain, words in WRONG_GAIN:
        if all(_near(seconds, gain(story, rank), 0.01) for story, (rank, seconds) in pairs):
            raise Mistake(words)
    story, (rank, seconds) = next(pair for pair in pairs if not _near(pair[1][1], pair[0].wanted[1]))
    raise Mistake(
        f"{story.name}: rank {rank} is right, and comes {1e3 * story.wanted[1]:.1f} ms after the last of the others "
        f"(median over the steps); yours are {1e3 * seconds:.1f} ms."
    )


def _wrong_rank(named: Sequence[tuple[Story, int | None]]) -> None:
    for pick, words in WRONG_RANK:
        if all(rank == pick(story) for story, rank in named):
            raise Mistake(words)
    story, rank = next((story, rank) for story, rank in named if rank != story.straggler)
    right = story.straggler
    if right is None:
        raise Mistake(f"{story.name}: you name rank {rank}, and no rank comes last in more than half of the steps.")
    often = f"rank {right} comes last in {_last_often(story, right)} of {len(story.steps)} steps"
    beside = (
        ' Only all-reduces among *all* ranks end a step: `op.kind == "all_reduce"` and `len(op.ranks) == '
        "len(timeline)`; sends, broadcasts and all-reduces in pairs stand beside."
        if story.chatter
        else ""
    )
    raise Mistake(f"{story.name}: {often}, and you name {'nobody' if rank is None else f'rank {rank}'}.{beside}")


def _near(seconds: float, wanted: float, within: float = NEAR) -> bool:
    return abs(seconds - wanted) <= within * abs(wanted)
