"""02.when_full: hooks that tell when a bucket is full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

from utils.checks.lab01.cases import on_case
from utils.checks.lab01.traps import Trap, lopsided, shares
from utils.checks.lab02.order import ALREADY_THERE
from utils.checks.lab02.traps import DEEP, DEEP_TIED, NEVER_USED, TWO_WAYS, laid
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake, with_article

TRAPS = (DEEP, DEEP_TIED, TWO_WAYS, NEVER_USED)
AFTER_ANOTHER = f"{DEEP.name}, after another micro-batch"


@dataclass(frozen=True)
class Acted:
    """What one rank saw during one backward.

    buckets   how many parameters each has
    order     numbers of the parameters, counted through the buckets, in the order in which they became ready
    acts      (number given to `act`, how many gradients were ready then)
    early     the same before backward began
    again     the same in a backward after `.remove()` of each handle
    returned  the kind of thing that came back in place of handles, or ""
    """

    buckets: tuple[int, ...]
    order: tuple[int, ...] = ()
    acts: tuple[tuple[Any, int], ...] = ()
    early: tuple[tuple[Any, int], ...] = ()
    again: tuple[tuple[Any, int], ...] = ()
    returned: str = ""


def verify(answer: Any) -> str:
    tried = {trap.name: partial(observe, trap) for trap in TRAPS}
    tried[AFTER_ANOTHER] = partial(observe, DEEP, earlier=True)
    cases = run_cases(answer, tried, 2)
    for name, seen in cases.items():
        with on_case(name, seen, first=name == DEEP.name):
            judge(seen, earlier=name == AFTER_ANOTHER)
    return (
        "`act` is called once for each bucket, as soon as it and all before it are full, in the order of the buckets, "
        "on 2 ranks, also with tied weights, with gradients that become ready in another order on each rank, and with "
        "those of an earlier micro-batch there already; a bucket that never fills holds back those after it; and the "
        "hooks can be removed."
    )


def observe(trap: Trap, answer: Any, mark: Mark, earlier: bool = False) -> Acted:
    """In a rank: one backward with the answer's hooks, another after they were removed.

    earlier: a micro-batch before has left its gradients.
    """
    import torch.distributed as dist

    model = trap.build()
    inputs, targets = shares(dist.get_world_size())[dist.get_rank()]
    buckets = laid(model)
    sizes = tuple(map(len, buckets))
    if earlier:
        lopsided(model(inputs), targets).backward()
    order: list[int] = []
    acts: list[tuple[Any, int]] = []
    parameters = [p for bucket in buckets for p in bucket]
    own = [p.register_post_accumulate_grad_hook(lambda _, n=n: order.append(n)) for n, p in enumerate(parameters)]
    handles = answer(buckets, lambda number: acts.append((_plain(number), len(order))))
    if returned := _no_handles(handles):
        return Acted(sizes, returned=returned)
    if early := tuple(acts):  # what was registered may not even be a function
        return Acted(sizes, early=early)
    lopsided(model(inputs), targets).backward()
    first, ready = tuple(acts), tuple(order)
    for handle in (*handles, *own):
        handle.remove()
    lopsided(model(inputs), targets).backward()
    return Acted(sizes, ready, first, again=tuple(acts[len(first) :]))


def _no_handles(returned: Any) -> str:
    """What came back in place of a list of handles, or ""."""
    if not isinstance(returned, list | tuple):
        return with_article(type(returned).__name__)
    strange = [each for each in returned if isinstance(each, list | tuple) or not hasattr(each, "remove")]
    return f"a list with {with_article(type(strange[0]).__name__)} in it" if strange else ""


def judge(seen: Sequence[Seen], earlier: bool = False) -> None:
    """In the notebook. `earlier`: gradients were there before the backward."""
    for rank, each in enumerate(seen):
        found: Acted = each.value
        if found.returned:
            raise Mistake(
                f"your function returns {found.returned}; it is to return the list of handles that "
                "`register_post_accumulate_grad_hook` gave, so that the hooks can be removed."
            )
        if found.early:
            raise Mistake("`act` is called before backward begins: call it in a hook, not where the hook is made.")
        _judge_acts(found, rank, earlier)
        if found.again:
            raise Mistake(
                "after `.remove()` of every handle that you returned, `act` is still called in the next backward: "
                "return the handles of all hooks."
            )


def _judge_acts(found: Acted, rank: int, earlier: bool) -> None:
    numbers = [number for number, _ in found.acts]
    wrong = [number for number in numbers if not isinstance(number, int) or not 0 <= number < len(found.buckets)]
    if wrong:
        raise Mistake(f"`act` is given {wrong[0]}; it takes the number of a bucket, 0 to {len(found.buckets) - 1}.")
    wanted = full_in_order(found)
    if not numbers and wanted:
        raise Mistake("`act` is never called: is a hook registered on every parameter of every bucket?")
    for number in numbers:
        if numbers.count(number) > 1:
            raise Mistake(
                f"`act({number})` is called {numbers.count(number)} times in one backward: a bucket is full only once."
            )
    if numbers != sorted(numbers):
        raise Mistake(
            f"on rank {rank} `act` is called for the buckets {', '.join(map(str, numbers))}, in this order: they must "
            "go out as 0, 1, 2, … on every rank, or the ranks' all-reduces do not match. A bucket that is full early "
            "waits for those before it."
        )
    when = dict(found.acts)
    if wanted and all(when.get(number) == ready - 1 for number, ready in wanted.items()):
        raise Mistake(
            "`act` is called one gradient early for every bucket. Do you register by `register_hook`? It calls before "
            "the gradient is in `.grad`; take `register_post_accumulate_grad_hook`. If you do: does the count of what "
            "is missing begin one too low?"
        )
    for number, ready in wanted.items():
        if number not in when:
            last = " It is the last one, and smaller than the others." if number == len(found.buckets) - 1 else ""
            raise Mistake(f"`act({number})` is never called, though bucket {number} is full.{last}")
        _judge_moment(number, when[number], ready, len(found.order), earlier)
    for number in when:
        if number not in wanted:
            raise Mistake(
                f"`act({number})` is called, though bucket {number}, or one before it, holds a gradient that never "
                "became ready."
            )


def _judge_moment(number: int, got: int, wanted: int, total: int, earlier: bool) -> None:
    if got < wanted:
        raise Mistake(
            f"`act({number})` is called with {got} of {total} gradients ready; bucket {number} and those before it are "
            f"full with {wanted}. A bucket is full when every gradient in it is ready, whichever comes last."
            f"{ALREADY_THERE if earlier else ''}"
        )
    if got > wanted:
        raise Mistake(
            f"`act({number})` is called with {got} of {total} gradients ready, though bucket {number} and those before "
            f"it are full with {wanted}: call it in the hook that fills the bucket."
        )


def full_in_order(found: Acted) -> dict[int, int]:
    """By bucket, with how many gradients ready it and all before it are full."""
    wanted, begin, latest = {}, 0, 0
    place = {number: ready for ready, number in enumerate(found.order, start=1)}
    for number, size in enumerate(found.buckets):
        members = range(begin, begin + size)
        if not all(each in place for each in members):
            break
        begin += size
        latest = max(latest, *(place[each] for each in members))
        wanted[number] = latest
    return wanted


def _plain(number: Any) -> Any:
    """A number as it is, anything else in words: the repr of a parameter would fill the page."""
    return int(number) if isinstance(number, Integral) and not isinstance(number, bool) else _words(number)


def _words(value: Any) -> str:
    return repr(value) if isinstance(value, bool | float | str | None) else with_article(type(value).__name__)
