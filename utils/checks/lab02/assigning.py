"""02.assign_buckets: which gradients share a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article
from utils.theory.buckets import ddp_buckets

# (sizes of the gradients in the order of `model.parameters()`, the cap): the first cases tell most mistakes apart.
CASES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((8, 6, 4, 6, 4, 2), 10),  # reaches 10 with more than 10, then exactly, then never
    ((5, 5, 5, 5), 10),
    ((3, 50, 3, 3), 10),  # one gradient larger than the cap
    ((7, 1, 2), 1000),
    ((9, 9, 9), 1),
    ((12,), 10),
    ((), 10),
    ((4096, 16, 1_048_576, 1024, 26_214_400, 4096, 999), 1_048_576),
)


def verify(answer: Any) -> str:
    (seen,) = run_cases(answer, {"sizes": partial(observe)}, 1)["sizes"]
    for (sizes, cap), got in zip(CASES, seen.value, strict=True):
        judge(list(sizes), cap, got)
    return (
        f"{len(CASES)} lists of gradients, each in reverse order, in buckets that close when they reach their cap; "
        "also with one gradient above the cap, a last bucket that stays smaller, and no gradients at all."
    )


def observe(answer: Any, mark: Mark) -> list[Any]:
    """In a rank: what the answer returns for each case, as lists, or the kind of thing it is."""
    return [_plain(answer(list(sizes), cap)) for sizes, cap in CASES]


def judge(sizes: Sequence[int], cap: int, got: Any) -> None:
    """In the notebook: raise Mistake unless `got` are DDP's buckets."""
    where = f"for gradients of {list(sizes)} B and a cap of {cap} B"
    if isinstance(got, str):
        raise Mistake(f"{where} your function returns {got}; it is to return a list of lists of positions.")
    wanted = reference(sizes, cap)
    if got == wanted:
        return
    shown = f"{where} the buckets are {got}, and should be {wanted}"
    positions = [i for bucket in got for i in bucket]
    if sorted(positions) != list(range(len(sizes))):
        raise Mistake(_positions(positions, got, wanted, len(sizes), shown))
    if [] in got:
        raise Mistake(f"{shown}: one of yours is empty.")
    for buckets, diagnosis in named_mistakes(sizes, cap).items():
        if tuple(map(tuple, got)) == buckets:
            raise Mistake(f"{shown}: {diagnosis}.")
    if positions != sorted(positions, reverse=True):
        raise Mistake(f"{shown}: the last gradient comes first, since backward finishes it first.")
    raise Mistake(f"{shown}.")


def reference(sizes: Sequence[int], cap: int) -> list[list[int]]:
    """DDP's buckets, as positions in `sizes`."""
    last = len(sizes) - 1
    return [[last - i for i in bucket] for bucket in ddp_buckets(list(reversed(sizes)), bucket_cap_bytes=cap)]


def named_mistakes(sizes: Sequence[int], cap: int) -> dict[tuple[tuple[int, ...], ...], str]:
    """Buckets that a known mistake lays, and that mistake in words. Mistakes that change nothing here are left out."""
    backwards = list(reversed(range(len(sizes))))
    forwards = [[len(sizes) - 1 - i for i in bucket] for bucket in reference(list(reversed(sizes)), cap)]
    reached = reference(sizes, cap)
    laid = {
        "all are in one bucket, so that nothing can be sent before backward ends": [backwards],
        "every gradient has a bucket of its own": [[i] for i in backwards],
        "they are filled in forward order, but backward finishes the last gradients first": forwards,
        "each bucket is turned around, but the bucket of the last gradients must be the first": [
            list(reversed(bucket)) for bucket in forwards
        ],
        "the buckets come in forward order: the one that is full first is the first": list(reversed(reached)),
        "a bucket closes before it would exceed the cap; DDP's closes when it *reaches* it, and so may be larger": (
            _close_before(sizes, cap, backwards)
        ),
        "a bucket closes only when it is larger than the cap: to reach it is enough": _close_after(
            sizes, cap, backwards
        ),
    }
    return {tuple(map(tuple, buckets)): words for words, buckets in laid.items() if buckets != reached}


def _close_before(sizes: Sequence[int], cap: int, order: Sequence[int]) -> list[list[int]]:
    buckets: list[list[int]] = []
    for i in order:
        if buckets and sum(sizes[j] for j in buckets[-1]) + sizes[i] <= cap:
            buckets[-1].append(i)
        else:
            buckets.append([i])
    return buckets


def _close_after(sizes: Sequence[int], cap: int, order: Sequence[int]) -> list[list[int]]:
    return reference(sizes, cap + 1) if order else []


def _positions(
    positions: Sequence[int], got: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]], count: int, shown: str
) -> str:
    strange = [i for i in positions if not 0 <= i < count]
    if strange:
        return f"{shown}: {strange[0]} is no position (those are 0 to {count - 1}); sizes are only for adding up."
    missing = sorted(set(range(count)) - set(positions))
    if list(got) == list(wanted)[:-1]:
        return f"{shown}: the last bucket, which does not reach its cap, is forgotten."
    if missing:
        return f"{shown}: gradient {missing[0]} is in none."
    return f"{shown}: a gradient is in two buckets."


def _plain(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return with_article(type(value).__name__)
    for bucket in value:
        if not isinstance(bucket, list | tuple):
            return f"a list with {with_article(type(bucket).__name__)} in it"
        for i in bucket:
            if isinstance(i, bool) or not isinstance(i, int):
                return f"a list of lists with {with_article(type(i).__name__)} in it"
    return [list(bucket) for bucket in value]
