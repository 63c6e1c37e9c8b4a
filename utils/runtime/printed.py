"""What ranks print: each into its own file, shown by the parent in rank order, never interleaved."""

from __future__ import annotations

import os
import re
import sys

SHOWN_PER_RANK = 20_000  # characters; the whole stays in `run.printed`
# gloo's own banner, one for each group and rank, says nothing that a learner asked for. Nor does torch's store with its
# word that an address has no name.
_BANNER = re.compile(
    r"^\[Gloo\] Rank \d+ is connected to \d+ peer ranks\..*\n?"
    r"|^\[W[\d. :]+ socket\.cpp:\d+\] \[c10d\] The hostname of the client socket cannot be retrieved\..*\n?",
    re.MULTILINE,
)


def read_printed(folder: str, world_size: int) -> list[str]:
    """What each rank wrote to stdout and stderr, by rank."""
    texts = []
    for rank in range(world_size):
        try:
            with open(os.path.join(folder, f"printed.{rank}"), encoding="utf-8", errors="backslashreplace") as file:
                texts.append(_BANNER.sub("", file.read()))
        except FileNotFoundError:  # the rank did not get that far
            texts.append("")
    return texts


def show_printed(texts: list[str]) -> None:
    """Print every rank's lines with the rank in front."""
    for rank, text in enumerate(texts):
        for line in text[:SHOWN_PER_RANK].splitlines():
            sys.stdout.write(f"[rank {rank}] {line}\n")
        if len(text) > SHOWN_PER_RANK:
            left = len(text) - SHOWN_PER_RANK
            sys.stdout.write(f"[rank {rank}] … and {left:,} characters more: see run.printed[{rank}]\n")
