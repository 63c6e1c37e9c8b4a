"""02.assign_buckets: which gradients share a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any

from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article
from utils.theory.buckets import FIRST_BUCKET_BYTES, ddp_buckets
from utils.theory.units import MiB

# (sizes of the gradients in the order of `model.parameters()`, the cap): the first cases tell most mistakes apart.
CASES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((8, 6, 4, 6, 4, 2), 10),  # reaches 10 with more than 10, then exactly, then never
    ((5, 5, 5, 5), 10),
    ((4, 7, 4, 18), 10),  # one gradient larger than the cap
    ((7, 1, 2), 1000),
    ((9, 9, 9), 1),
    ((12,), 10),
    ((), 10),
    ((MiB, 3 * MiB, 2 * MiB, 3 * MiB, 2 * MiB), 4 * MiB),  # DDP's small first bucket is not for a cap of one's own
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
    return _mirrored(ddp_buckets(list(reversed(sizes)), bucket_cap_bytes=cap), sizes)


def named_mistakes(sizes: Sequence[int], cap: int) -> dict[tuple[tuple[int, ...], ...], str]:
    """Buckets that a known mistake lays, and that mistake in words. Mistakes that change nothing here are left out."""
    backwards = list(reversed(range(len(sizes))))
    forwards = _mirrored(reference(list(reversed(sizes)), cap), sizes)
    reached = reference(sizes, cap)
    small_first = ddp_buckets(
        list(reversed(sizes)), first_bucket_bytes=min(cap, FIRST_BUCKET_BYTES), bucket_cap_bytes=cap
    )
    laid = {
        "all are in one bucket, so that nothing can be sent before backward ends": [backwards],
        "every gradient has a bucket of its own": [[i] for i in backwards],
        "they are filled in forward order, but backward finishes the last gradients first": forwards,
        "each bucket is turned around, but the bucket of the last gradients must be the first": [
            list(reversed(bucket)) for bucket in forwards
        ],
        "the buckets come in forward order: the one that is full first is the first": list(reversed(reached)),
        "positions are counted from the end; position 0 is the first of `sizes`": _mirrored(reached, sizes),
        "the first bucket closes at 1 MiB, as with DDP's default cap; a cap of your own holds for the first too": (
            _mirrored(small_first, sizes)
        ),
        "each bucket begins with what the one before it held above the cap: begin it with 0 B": (
            _carried(sizes, cap, backwards, excess_only=True)
        ),
        "the size counted so far is never set back to 0 when a bucket closes": (
            _carried(sizes, cap, backwards, excess_only=False)
        ),
        "a bucket closes before it would exceed the cap; DDP's closes when it *reaches* it, and so may be larger": (
            _close_before(sizes, cap, backwards)
        ),
        "a bucket closes only when it is larger than the cap: to reach it is enough": _close_after(
            sizes, cap, backwards
        ),
    }
    return {tuple(map(tuple, buckets)): words for words, buckets in laid.items() if buckets != reached}


def _mirrored(buckets: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[list[int]]:
    """The same buckets with positions counted from the other end."""
    return [[len(sizes) - 1 - i for i in bucket] for bucket in buckets]


def _carried(sizes: Sequence[int], cap: int, order: Sequence[int], excess_only: bool) -> list[list[int]]:
    """A bucket begins with the bytes of those before it: all of them, or only what exceeded the cap."""
    buckets: list[list[int]] = [[]]
    held = 0
    for i in order:
        buckets[-1].append(i)
        held += sizes[i]
        if held >= cap:
            buckets.append([])
            held -= cap if excess_only else 0
    return [bucket for bucket in buckets if bucket]


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
        before = "; or does the loop end before position 0?" if missing == [0] else "."
        return f"{shown}: the last bucket, which does not reach its cap, is forgotten{before}"
    if missing:
        return f"{shown}: gradient {missing[0]} is in none."
    return f"{shown}: a gradient is in two buckets."


def _plain(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return with_article(type(value).__name__)
    for bucket in value:
        if not isinstance(bucket, list | tuple | range):
            return f"a list with {with_article(type(bucket).__name__)} in it"
        for i in bucket:
            if isinstance(i, bool) or not isinstance(i, Integral):
                return f"a list of lists with {with_article(type(i).__name__)} in it"
    if len({id(bucket) for bucket in value}) < len(value):
        return "one list several times (`.clear()` empties what is in the result already)"
    return [list(map(int, bucket)) for bucket in value]
