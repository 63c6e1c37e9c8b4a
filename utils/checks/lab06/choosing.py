"""06.shard_size: the group that fits in memory and keeps the link between nodes busy for the shortest time."""

from __future__ import annotations

from numbers import Real
from typing import Any

from utils.checks.lab06.choices import CASES, Choice, best
from utils.checks.lab06.rules import WRONG
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article
from utils.theory.units import GB


def verify(answer: Any) -> str:
    got = run_cases(answer, {"": _observe}, 1)[""][0].value
    judge(got)
    return (
        f"for {len(CASES)} clusters, from one node to 128 of 8, it is the group that fits 16Ψ/G in the memory and "
        "keeps the link busy for the shortest time; within a node where one fits, of several nodes where none does, "
        "None where nothing fits."
    )


def _observe(answer: Any, mark: Mark) -> list[Any]:
    return [answer(*case.arguments) for case in CASES]


def judge(got: list[Any]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first case that is wrong."""
    wanted = [best(case) for case in CASES]
    for case, found in zip(CASES, got, strict=True):
        if found is not None and (isinstance(found, bool) or not isinstance(found, Real)):
            kind = with_article(type(found).__name__)
            raise Mistake(f"{case.words}: your function returns {kind}; return a number of ranks, or None.")
    if got == wanted:
        return
    if all(each is None for each in got):
        raise Mistake("your function returns nothing, for every cluster; return the size of the group.")
    for rule, words in WRONG:
        if got == [rule(case) for case in CASES]:
            raise Mistake(words)
    case, found, right = next((c, g, w) for c, g, w in zip(CASES, got, wanted, strict=True) if g != w)
    raise Mistake(f"{case.words}: your answer is {found!r}, and {_reason(case, found, right)}")


def _reason(case: Choice, found: Any, right: int | None) -> str:
    if found is None:
        return f"a group of {right} fits: it holds {case.held(right) / GB:.1f} GB."
    if found not in case.sizes:
        return f"the groups to choose from are {', '.join(map(str, case.sizes))}."
    if found not in case.fitting():
        return f"16Ψ/{found} are {case.held(found) / GB:.1f} GB: that does not fit."
    return (
        f"a group of {right} keeps the link busy for {case.seconds(right):.3g} s "
        f"({case.across(right) / GB:.3g} GB, {case.steps(right)} steps), yours for {case.seconds(found):.3g} s "
        f"({case.across(found) / GB:.3g} GB, {case.steps(found)} steps)."
    )
