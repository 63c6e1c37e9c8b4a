"""07.my_shards: which files a reader takes in an epoch, so that together they read each once and all go on together."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from utils.checks.lab07.elsewhere import values_elsewhere
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article

EPOCHS = 3

Reader = tuple[int, int]  # rank, worker
Taken = dict[Reader, tuple[str, ...]]


@dataclass(frozen=True)
class Store:
    """`count` shards for `ranks` ranks with `workers` loading processes each."""

    count: int
    ranks: int
    workers: int

    @property
    def shards(self) -> list[str]:
        return [f"shard-{number:03}" for number in range(self.count)]

    @property
    def readers(self) -> list[Reader]:
        return [(rank, worker) for rank in range(self.ranks) for worker in range(self.workers)]

    @property
    def each(self) -> int:
        """Shards for a reader."""
        return self.count // len(self.readers)

    @property
    def calls(self) -> list[tuple[list[str], int, int, int, int, int]]:
        """The arguments of all readers, epoch by epoch."""
        return [(self.shards, e, rank, self.ranks, w, self.workers) for e in range(EPOCHS) for rank, w in self.readers]

    @property
    def words(self) -> str:
        return f"{self.count} shards, {self.ranks} ranks with {self.workers} worker{'s' * (self.workers > 1)}"


STORES = (Store(24, 4, 2), Store(26, 3, 2), Store(10, 4, 1), Store(22, 2, 3), Store(64, 8, 1), Store(6, 3, 2))
TOO_FEW = Store(5, 3, 2)


@dataclass(frozen=True)
class Read:
    """What the readers of a store took. wrong: in words, if a call returned no list of shards.

    refused: the ValueError that a call raised. epochs: by epoch, by reader. again: the same of a second time.
    changed: whether the list that was given was changed.
    """

    epochs: tuple[Taken, ...] = ()
    again: tuple[Taken, ...] = ()
    changed: bool = False
    wrong: str = ""
    refused: str = ""


def verify(answer: Any) -> str:
    seen = run_cases(answer, {store.words: _Observe(store) for store in STORES} | {"too few shards": refused}, 1)
    for store in STORES:
        try:
            judge(store, seen[store.words][0].value)
        except Mistake as mistake:
            raise Mistake(f"{store.words}: {mistake}") from None
    judge_refusal(seen["too few shards"][0].value)
    _judge_elsewhere(answer, STORES[0], seen[STORES[0].words][0].value)
    return (
        f"on {len(STORES)} stores with up to 8 ranks and 3 workers no shard is read twice in an epoch, all readers get "
        "the same number, the largest for which there are enough, in another order in each epoch; what is left out "
        "differs; and too few shards are refused in one sentence."
    )


class _Observe:
    """In a rank: all readers, one after the other, each with a random state of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, answer: Any, mark: Mark) -> Read:
        import torch

        store, given, rounds = self._store, self._store.shards, []
        for again in (False, True):
            taken: list[Taken] = []
            for epoch in range(EPOCHS):
                taken.append({})
                for rank, worker in store.readers:
                    random.seed(1000 * rank + 10 * worker + again)
                    torch.manual_seed(1000 * rank + 10 * worker + again)
                    try:
                        got = answer(given, epoch, rank, store.ranks, worker, store.workers)
                    except ValueError as error:
                        if store.each > 1:
                            raise
                        return Read(refused=str(error))
                    if given != store.shards:
                        return Read(changed=True)
                    if wrong := _wrong(got, given):
                        return Read(wrong=wrong)
                    taken[-1][rank, worker] = tuple(got)
            rounds.append(tuple(taken))
        return Read(*rounds)


def _wrong(got: Any, given: Sequence[str]) -> str:
    if got is None:
        return "nothing"
    if not isinstance(got, list | tuple):
        return with_article(type(got).__name__)
    unknown = [each for each in got if each not in given]
    return f"{unknown[0]!r}, which is none of the shards" if unknown else ""


def refused(answer: Any, mark: Mark) -> str | None:
    """In a rank: the sentence of the ValueError, or None if there was none."""
    store = TOO_FEW
    try:
        answer(store.shards, 0, 0, store.ranks, 0, store.workers)
    except ValueError as error:
        return str(error)
    except NotImplementedError:
        raise
    except Exception as error:
        return f"\n{type(error).__name__}"
    return None


def judge(store: Store, read: Read) -> None:
    """In the notebook: raise Mistake, naming the first thing that is wrong."""
    if read.changed:
        raise Mistake(
            "your function changes the list that it is given (`random.shuffle` works in place): the next epoch then "
            "begins with another order. Shuffle a copy."
        )
    if read.wrong:
        raise Mistake(f"your function returns {read.wrong}; return a list of some of the shards.")
    if read.refused:
        readers = len(store.readers)
        raise Mistake(
            f"{store.count} shards are enough for {readers} readers, one for each, and your function raises a "
            f"ValueError: {read.refused.strip()}"
        )
    if read.epochs != read.again:
        raise Mistake(
            "the same call gives other shards the second time: the order depends on the process's random state, which "
            "differs between readers. Make it from the epoch alone, such as `random.Random(epoch)`."
        )
    for epoch, taken in enumerate(read.epochs):
        _judge_twice(epoch, taken)
        _judge_counts(store, taken)
    orders = [tuple(taken[reader] for reader in store.readers) for taken in read.epochs]
    if len(set(orders)) == 1:
        raise Mistake(
            "the shards come in the same order in every epoch: shuffle them, with the epoch as the seed, so that all "
            "readers shuffle alike."
        )
    if store.count > 9:  # of so many shards no two orders are alike by chance
        for one, other in combinations(range(EPOCHS), 2):
            if orders[one] == orders[other]:
                raise Mistake(
                    f"epochs {one} and {other} have the same order: give each epoch one of its own, with its number as "
                    "the seed."
                )
    left = [frozenset(store.shards).difference(*taken.values()) for taken in read.epochs]
    if left[0] and len(set(left)) == 1:
        raise Mistake(
            f"{', '.join(sorted(left[0])[:3])} is left out in every epoch, and never learned from: shuffle first, then "
            "leave out what does not divide."
        )


def _judge_elsewhere(answer: Any, store: Store, read: Read) -> None:
    """Raise Mistake unless a process that came into being apart from the ranks takes the same shards."""
    there = [tuple(taken) for taken in values_elsewhere(answer, store.calls)]
    if there != [taken[reader] for taken in read.epochs for reader in store.readers]:
        raise Mistake(
            "in another process the same call gives other shards: `hash` of a text and the order of a set differ from "
            "process to process, as does all that a process has of its own. Make the order from the epoch alone, such "
            "as `random.Random(epoch)`."
        )


def _judge_twice(epoch: int, taken: Taken) -> None:
    owner: dict[str, Reader] = {}
    for reader, shards in taken.items():
        for shard in shards:
            if shard not in owner:
                owner[shard] = reader
                continue
            (rank, worker), (other, another) = reader, owner[shard]
            if reader == owner[shard]:
                raise Mistake(f"{shard} is read twice by rank {rank}, worker {worker}, in epoch {epoch}.")
            if rank == other and set(shards) == set(taken[owner[shard]]):
                raise Mistake(
                    f"workers {another} and {worker} of rank {rank} read the same shards: every sample comes "
                    "`workers` times in an epoch. The readers are all workers of all ranks."
                )
            if worker == another and set(shards) == set(taken[owner[shard]]):
                raise Mistake(f"ranks {other} and {rank} read the same shards: each is to read its own part.")
            raise Mistake(
                f"in epoch {epoch} {shard} is read by rank {other}, worker {another}, and by rank {rank}, worker "
                f"{worker}: do all readers cut one and the same order into parts that do not overlap?"
            )


def _judge_counts(store: Store, taken: Taken) -> None:
    counts = {reader: len(shards) for reader, shards in taken.items()}
    few, many = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[few] != counts[many]:
        raise Mistake(
            f"rank {many[0]}, worker {many[1]}, reads {counts[many]} shards, rank {few[0]}, worker {few[1]}, "
            f"{counts[few]}: when that one has no batch left, the others wait in their all-reduce for ever. Give all "
            "the same number, and leave out what does not divide."
        )
    if counts[few] < store.each:
        raise Mistake(f"each reader gets {counts[few]} shards, and there are {store.each} for each.")


def judge_refusal(said: str | None) -> None:
    """Raise Mistake unless too few shards were refused in one sentence."""
    count, readers = TOO_FEW.count, len(TOO_FEW.readers)
    case = f"{count} shards for {readers} readers ({TOO_FEW.ranks} ranks with {TOO_FEW.workers} workers)"
    if said is None:
        raise Mistake(f"{case}: some reader has nothing to read, and your function says nothing. Raise a ValueError.")
    if said.startswith("\n"):
        raise Mistake(f"{case}: there your function raises {said.strip()}; raise a ValueError that says why.")
    numbers = re.findall(r"\d+", said)
    words = re.findall(r"[^\W\d_]{2,}", said)
    if "\n" in said.strip() or str(count) not in numbers or str(readers) not in numbers or len(words) < 2:
        raise Mistake(
            f"{case}: your ValueError says {said.strip()!r}; one sentence with both numbers, {count} and {readers}, "
            "tells the reader what is wrong."
        )
