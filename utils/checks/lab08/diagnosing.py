"""08.diagnose: which prediction was furthest off, and what of the step it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from utils.checks.lab08.job import STRATEGIES, Step
from utils.checks.lab08.laws import JOBS, expected
from utils.checks.lab08.named import listed, shown
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to, shut_to_answers
from utils.checks.verdict import Mistake
from utils.theory.units import format_seconds

#: What a step's error can be -> in words.
CAUSES = {
    "bytes": "more or fewer bytes crossed than predicted, and the link was busy accordingly",
    "link": "the bytes are right, but collectives took longer, or less long, than their bytes and steps account for",
    "alone": "outside the collectives: compute, copies into buffers and back, the optimizer's own step",
}
BYTES_DIFFER = 0.05
Steps = Mapping[str, Step]
Answer = tuple[str, str]


@shut_to_answers
def off(predicted: Step, measured: Step) -> float:
    """The error of a step's seconds, as a share of what was measured; positive where it took longer."""
    return (measured.seconds - predicted.seconds) / measured.seconds


@shut_to_answers
def furthest(predicted: Steps, measured: Steps) -> str:
    """The strategy whose step is furthest off."""
    return max(predicted, key=lambda strategy: abs(off(predicted[strategy], measured[strategy])))


@shut_to_answers
def cause(predicted: Step, measured: Step) -> str:
    """Which of a step's parts changed by more seconds; the link is innocent where its bytes were more than 5% off.

    The larger change has the sign of the whole error: the two parts add up to it.
    """
    if abs(measured.alone - predicted.alone) >= abs(measured.communicating - predicted.communicating):
        return "alone"
    return _link_or_bytes(predicted, measured)


def diagnosis(predicted: Steps, measured: Steps) -> Answer:
    """(strategy, cause)."""
    strategy = furthest(predicted, measured)
    return strategy, cause(predicted[strategy], measured[strategy])


def _changed(predicted: Steps, strategy: str, link: float = 0.0, alone: float = 0.0, more_bytes: float = 0.0) -> Steps:
    """The prediction, but of one strategy; link, alone in parts of its step."""
    step = predicted[strategy]
    both = step.seconds * (1 + link + alone)
    on_link = step.communicating + link * step.seconds
    off_by = replace(step, seconds=both, communicating=on_link, across=step.across * (1 + more_bytes))
    return {**predicted, strategy: off_by}


def _stories() -> tuple[tuple[Steps, Steps], ...]:
    """What was predicted, and what might have been measured."""
    found = []
    for job in (JOBS[0], JOBS[3], JOBS[4]):
        law = {strategy: expected(job, strategy) for strategy in STRATEGIES}
        longest = max(law, key=lambda strategy: law[strategy].seconds)
        shortest = min(law, key=lambda strategy: law[strategy].seconds)
        slightly = _changed(law, longest, alone=0.10)  # most seconds, but not the largest share
        found += [
            (law, _changed(slightly, shortest, link=0.14)),
            (law, _changed(slightly, shortest, link=0.20, alone=-0.05, more_bytes=0.30)),
            (law, _changed(law, "zero1", alone=0.08, link=0.03, more_bytes=0.01)),
            (law, _changed(_changed(law, "fsdp", link=0.05), "zero1", link=-0.12)),
            (law, _changed(_changed(law, "hsdp", alone=0.02), "ddp", link=-0.15, alone=0.04, more_bytes=-0.2)),
            (law, _changed(law, "fsdp", link=0.08, alone=0.05)),
            (law, _changed(law, "hsdp", link=0.05, alone=0.08)),
            (law, _changed(law, "fsdp", link=0.02, alone=0.10, more_bytes=0.4)),
            (law, _changed(_changed(law, "ddp", link=0.04), "hsdp", alone=-0.11, link=0.02)),
            (law, _changed(law, "ddp", link=0.12, alone=0.01, more_bytes=0.03)),
        ]
    return (*found, *_round_stories())


def _round_stories() -> tuple[tuple[Steps, Steps], ...]:
    """Steps of 1 s, half of it in collectives. Sums of powers of two, so that two parts can change by as much."""
    alike = {strategy: Step(1e9, 1e9, 1.0, 0.5) for strategy in STRATEGIES}

    def story(**measured: tuple[float, float, float]) -> tuple[Steps, Steps]:
        """strategy -> (seconds, of them communicating, bytes across in parts of the prediction)."""
        found = {s: Step(1e9, 1e9 * part, seconds, busy) for s, (seconds, busy, part) in measured.items()}
        return alike, {**alike, **found}

    return (
        story(ddp=(1.9, 1.4, 1.0), hsdp=(0.6, 0.1, 1.0)),  # 90 % of 1 s, but 47 % of 1.9 s; 67 % of 0.6 s
        story(fsdp=(1.25, 0.625, 1.0)),  # both parts took 0.125 s longer
        story(zero1=(0.75, 0.375, 1.2)),  # both 0.125 s less
        story(ddp=(1.25, 0.75, 1.07)),
        story(fsdp=(1.25, 0.75, 1.052)),  # 5.2 % of what was predicted, 4.9 % of what was measured
    )


STORIES = _stories()
Rule = Callable[[Steps, Steps], Answer]


def _by(pick: Callable[[Step, Step], float], why: Callable[[Step, Step], str] = cause) -> Rule:
    def rule(predicted: Steps, measured: Steps) -> Answer:
        strategy = max(predicted, key=lambda each: pick(predicted[each], measured[each]))
        return strategy, why(predicted[strategy], measured[strategy])

    return rule


def _because(why: Callable[[Step, Step], str]) -> Rule:
    return _by(lambda p, m: abs(off(p, m)), why)


def _link_or_bytes(predicted: Step, measured: Step) -> str:
    return "bytes" if abs(measured.across - predicted.across) > BYTES_DIFFER * predicted.across else "link"


def _largest_part(predicted: Step, measured: Step) -> str:
    return "alone" if measured.alone >= measured.communicating else _link_or_bytes(predicted, measured)


def _bytes_first(predicted: Step, measured: Step) -> str:
    return "bytes" if _link_or_bytes(predicted, measured) == "bytes" else cause(predicted, measured)


def _only_longer(predicted: Step, measured: Step) -> str:
    grown = measured.communicating - predicted.communicating, measured.alone - predicted.alone
    return "alone" if grown[1] >= grown[0] else _link_or_bytes(predicted, measured)


def _any_bytes(predicted: Step, measured: Step) -> str:
    found = cause(predicted, measured)
    return "bytes" if found == "link" and measured.across != predicted.across else found


def _from(share: float, of_measured: bool = False) -> Callable[[Step, Step], str]:
    """Bytes count from this share on, of what was predicted or of what was measured."""

    def why(predicted: Step, measured: Step) -> str:
        whole = (measured if of_measured else predicted).across
        differ = abs(measured.across - predicted.across) > share * whole
        return "alone" if cause(predicted, measured) == "alone" else "bytes" if differ else "link"

    return why


def _ties_on_link(predicted: Step, measured: Step) -> str:
    equal = abs(measured.alone - predicted.alone) == abs(measured.communicating - predicted.communicating)
    return _link_or_bytes(predicted, measured) if equal else cause(predicted, measured)


def _by_share(predicted: Step, measured: Step) -> str:
    longer = 1 if measured.seconds > predicted.seconds else -1
    on_link = longer * (measured.communicating / predicted.communicating - 1)
    alone = longer * (measured.alone / predicted.alone - 1) if predicted.alone else 0.0
    return "alone" if alone >= on_link else _link_or_bytes(predicted, measured)


# A rule that somebody may have followed -> what it leaves out.
WRONG: tuple[tuple[Rule, str], ...] = (
    (
        _by(lambda p, m: abs(m.seconds - p.seconds)),
        "the strategy with the largest error in seconds is named: a long step may be off by more seconds, and be the "
        "better prediction. Compare shares of what was measured.",
    ),
    (
        _by(lambda p, m: off(p, m)),
        "a step that took less time than predicted is never named: an error counts in both directions.",
    ),
    (
        _by(lambda p, m: abs(m.seconds - p.seconds) / p.seconds),
        "errors are divided by what was predicted: divide by what was measured.",
    ),
    (_by(lambda p, m: m.seconds), "the slowest strategy is named, not the one that was predicted worst."),
    (
        _because(_bytes_first),
        "`bytes` is the answer wherever bytes differ, also where the link was busy for about as long as predicted: ask "
        "first which part of the step changed most.",
    ),
    (
        _because(_only_longer),
        "where a step took less time than predicted, the part that became shorter is the cause.",
    ),
    (
        _because(_any_bytes),
        "bytes that are a few percent off are named as the cause: headers make 2 % or 3 %. Count from 5 % on.",
    ),
    (
        _because(lambda p, m: "link" if cause(p, m) == "bytes" else cause(p, m)),
        "`bytes` is never the answer: a link that carries more than predicted by more than 5 % is not slow.",
    ),
    (
        _because(_from(0.10)),
        "bytes that differ by 7 % do not count in your answer: bytes count from 5 % on.",
    ),
    (
        _because(_from(BYTES_DIFFER, of_measured=True)),
        "the 5 % of `across` are counted from what was measured: count them from what was predicted.",
    ),
    (
        _because(_ties_on_link),
        "where the time outside collectives and that in them changed by as much you blame the collectives: where both "
        "did as much it is 'alone'.",
    ),
    (_because(_largest_part), "the largest part of the step is named, not the part that changed most."),
    (_because(_by_share), "the parts are compared by their own shares: what counts is the seconds that each adds."),
    (_because(lambda p, m: "alone"), "the cause is always the same, 'alone'."),
    (_because(_link_or_bytes), "`alone` is never the answer: compare how much the time outside collectives changed."),
)  # fmt: skip


def verify(answer: Any) -> str:
    judge(run_cases(answer, {"": _observe}, 1)[""][0].value)
    return (
        f"in {len(STORIES)} made-up runs the strategy whose step is furthest off, as a share, and the part of it that "
        "changed most: the link, more or fewer bytes on it, or the time outside collectives."
    )


def _observe(answer: Any, mark: Mark) -> list[Any]:
    return answers_to(((dict(predicted), dict(measured)) for predicted, measured in STORIES), answer)


def judge(returned: list[Any]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first run that is wrong."""
    got = [_answer(each) for each in returned]
    wanted = [diagnosis(*story) for story in STORIES]
    if got == wanted:
        return
    for rule, words in WRONG:
        if got == [rule(*story) for story in STORIES]:
            raise Mistake(words)
    if all(g[0] == w[0] for g, w in zip(got, wanted, strict=True)) and len({g[1] for g in got}) == 1:
        raise Mistake(f"the cause is always the same, {got[0][1]!r}.")
    (predicted, measured), found, right = next(
        (story, g, w) for story, g, w in zip(STORIES, got, wanted, strict=True) if g != w
    )
    raise Mistake(_difference(predicted, measured, found, right))


def _answer(returned: Any) -> Answer:
    if returned is None:
        raise Mistake("your function returns nothing; return (strategy, cause).")
    pair = listed(returned)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise Mistake(f"your function returns {shown(returned)}; return a pair, (strategy, cause).")
    strategy, why = pair
    if not (isinstance(strategy, str) and strategy in STRATEGIES and isinstance(why, str) and why in CAUSES):
        raise Mistake(
            f"your function returns {shown(returned)}; the strategies are {', '.join(STRATEGIES)}, the causes "
            f"{', '.join(CAUSES)}."
        )
    return strategy, why


def _difference(predicted: Steps, measured: Steps, found: Answer, right: Answer) -> str:
    if found[0] != right[0]:
        errors = [f"{off(predicted[each], measured[each]):+.1%} in {each}" for each in (found[0], right[0])]
        return f"you name {found[0]}; the steps differ from the prediction by {' and '.join(errors)}."
    p, m = predicted[right[0]], measured[right[0]]
    parts = [
        f"in collectives {format_seconds(p.communicating)} were predicted and {format_seconds(m.communicating)} found",
        f"outside {format_seconds(p.alone)} and {format_seconds(m.alone)}",
        f"the bytes across differ by {m.across / p.across - 1:+.1%}",
    ]
    return f"you say {found[1]!r} for {right[0]}, and it is {right[1]!r}: {', '.join(parts)}."
