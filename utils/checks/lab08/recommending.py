"""08.recommend: the strategy for a memory and a link, by the learner's own predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from utils.checks.lab08.job import STRATEGIES, Job
from utils.checks.lab08.laws import JOBS, memory, seconds
from utils.checks.lab08.named import shown
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to
from utils.checks.verdict import Mistake
from utils.theory.units import MB, format_seconds

CLOSE = 0.05  # a step that is longer by no more than this counts as equally fast


@dataclass(frozen=True)
class Question:
    """Which strategy, for this job and so many bytes of memory?"""

    job: Job
    memory: float

    def held(self, strategy: str) -> float:
        return memory(self.job, strategy)

    def seconds(self, strategy: str) -> float:
        return seconds(self.job, strategy)

    def fitting(self) -> list[str]:
        return [strategy for strategy in STRATEGIES if self.held(strategy) <= self.memory]

    @property
    def words(self) -> str:
        return f"{self.job.words}, {self.memory / MB:.4g} MB of memory, {8 * self.job.across / 1e6:g} Mbit/s across"


Rule = Callable[[Question], "str | None"]


def _simplest(among: list[str], of: Callable[[str], float], close: float = CLOSE) -> str | None:
    """The first whose number is within `close` of the least."""
    least = min(map(of, among), default=0.0)
    return next((strategy for strategy in among if of(strategy) <= (1 + close) * least), None)


def best(question: Question) -> str | None:
    """The first of those that fit and are at most 5% slower than the fastest of them; None if none fits."""
    return _simplest(question.fitting(), question.seconds)


def _questions() -> tuple[Question, ...]:
    square, one_node, alone, odd, large = JOBS
    psi = sum(square.parameters)
    asked = [Question(square, each * psi) for each in (20, 16, 13, 9, 4, 3.9)]
    asked += [
        Question(replace(square, across=rate), each * psi) for rate in (5e6, 5e8, 1.5e9) for each in (16, 11, 9, 5)
    ]
    asked += [Question(one_node, 16e9), *(Question(one_node, each * sum(one_node.parameters)) for each in (12, 9))]
    slow = replace(square, forward=tuple(20 * each for each in square.forward), across=1e9)
    asked += [Question(slow, 9 * psi)]  # where compute takes most of the time, FSDP is about as fast as HSDP
    asked += [Question(alone, 12 * sum(alone.parameters)), Question(odd, 9 * sum(odd.parameters))]
    asked += [Question(odd, 20 * sum(odd.parameters))]
    asked += [
        Question(replace(large, across=rate), each) for rate in (5e9, 400e9) for each in (80e9, 11.6e9, 6e9, 1.5e9, 8e7)
    ]
    return tuple(asked)


QUESTIONS = _questions()

# A rule that somebody may have followed -> what it leaves out.
WRONG: tuple[tuple[Rule, str], ...] = (
    (
        lambda q: _simplest(list(STRATEGIES), q.seconds),
        "the memory is not looked at: the fastest of all is taken, also where it does not fit.",
    ),
    (
        lambda q: _simplest([s for s in STRATEGIES if q.job.ranks * q.held(s) <= q.memory], q.seconds),
        "what all ranks together hold is compared with `memory`: that is the memory of one rank.",
    ),
    (
        lambda q: _simplest([s for s in STRATEGIES if q.held(s) <= q.job.ranks * q.memory], q.seconds),
        "`memory` is counted N times: it is that of one rank, compare it with what one rank holds.",
    ),
    (
        lambda q: _simplest([s for s in STRATEGIES if q.held(s) < q.memory], q.seconds),
        "a strategy that fills the memory exactly fits: at most `memory`, not less.",
    ),
    (
        lambda q: _simplest(q.fitting(), q.seconds, 0.0),
        "of those that are at most 5 % slower than the fastest the simplest is asked for: a prediction does not tell "
        "them apart.",
    ),
    (
        lambda q: next(iter(q.fitting()), None),
        "the first that fits is taken, however slow: HSDP may fit as well, and be faster.",
    ),
    (
        lambda q: min(q.fitting(), key=q.held, default=None),
        "the one that holds least is taken: memory that is free is worth nothing, look at the seconds.",
    ),
    (
        lambda q: max(q.fitting(), key=q.held, default=None),
        "the one that fills the memory most is taken: look at the seconds.",
    ),
    (
        lambda q: _simplest(q.fitting(), lambda s: _across(q, s)),
        "the one that sends least is taken: bytes that hide behind compute take no time, look at the seconds.",
    ),
    (
        lambda q: best(q) or "fsdp",
        "where none fits the answer is None: FSDP needs 16Ψ/N, and that may be too much as well.",
    ),
    (
        lambda q: _simplest([s for s in q.fitting() if s != "zero1"], q.seconds),
        "ZeRO-1 is never taken: it sends what DDP sends and holds less.",
    ),
    (
        lambda q: _simplest(sorted(q.fitting(), key=("ddp", "zero1", "hsdp", "fsdp").index), q.seconds),
        "HSDP is taken where FSDP is about as fast: FSDP comes before it in the order of `STRATEGIES`.",
    ),
    (
        lambda q: _overall(q),
        "the 5 % are counted from the fastest of all strategies: count them from the fastest of those that fit.",
    ),
)  # fmt: skip


def _across(question: Question, strategy: str) -> float:
    from utils.checks.lab08.laws import sent

    return sent(question.job, strategy)[1]


def _overall(question: Question) -> str | None:
    least = min(map(question.seconds, STRATEGIES))
    return next((s for s in question.fitting() if question.seconds(s) <= (1 + CLOSE) * least), None)


def verify(answer: Any) -> str:
    judge(run_cases(answer, {"": _observe}, 1)[""][0].value)
    return (
        f"the strategy for {len(QUESTIONS)} questions, from a model that fits in every way to one that fits in none, "
        "on links that bind and links that do not: the simplest of those that fit and are within 5 % of the fastest."
    )


def _observe(answer: Any, mark: Mark) -> list[Any]:
    return answers_to(((question.job, question.memory) for question in QUESTIONS), answer)


def judge(got: list[Any]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first question that is wrong."""
    if all(each is None for each in got):
        raise Mistake("your function returns nothing, for every question; return the name of a strategy.")
    if any(isinstance(each, str) and each == "None" for each in got):
        raise Mistake("your function returns 'None', a word: where nothing fits return None itself.")
    if (odd := next((each for each in got if not _is_a_choice(each)), None)) is not None:
        raise Mistake(
            f"your function returns {shown(odd)}; return a word, one of {', '.join(STRATEGIES)}, or None where none "
            "fits."
        )
    wanted = [best(question) for question in QUESTIONS]
    if got == wanted:
        return
    for rule, words in WRONG:
        if got == [rule(question) for question in QUESTIONS]:
            raise Mistake(words)
    question, found, right = next((q, g, w) for q, g, w in zip(QUESTIONS, got, wanted, strict=True) if g != w)
    raise Mistake(f"{question.words}: your answer is {found!r}, and {_reason(question, found, right)}")


def _is_a_choice(returned: Any) -> bool:
    return returned is None or (isinstance(returned, str) and returned in STRATEGIES)


def _reason(question: Question, found: Any, right: str | None) -> str:
    if found is None:
        return f"{right} fits: it holds {question.held(right) / MB:.4g} MB."
    if found not in question.fitting():
        return f"that holds {question.held(found) / MB:.4g} MB: it does not fit."
    return (
        f"{right} takes {format_seconds(question.seconds(right))} a step, {found} "
        f"{format_seconds(question.seconds(found))}; of those within 5 % of the fastest the first in "
        f"{', '.join(STRATEGIES)} is the simplest."
    )
