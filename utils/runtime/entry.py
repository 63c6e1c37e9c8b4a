"""The first lines of a rank's process. Imports no torch: here comes what must be done while there is one thread."""

from __future__ import annotations

from multiprocessing.connection import Connection

from utils.runtime.kernel_link import Door, enter


def rank_entry(index: int, pipes: list[Connection], doors: tuple[Door, ...]) -> None:
    """Join the rank's node, if the run has nodes, and live. What went wrong is told when there is somebody to tell."""
    refusal = None
    if doors:
        try:
            enter(doors[index])
        except OSError as error:
            refusal = error
    from utils.runtime.rank import rank_main  # imports torch

    rank_main(index, pipes, refusal)
