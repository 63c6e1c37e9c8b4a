"""A checkpoint that is whole or not there: written beside the old one, then put in its place in one move.

save(path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step)
state, step = load(path) or (None, 0)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from utils.theory.arguments import check_whole


def save(path: Path | str, state: dict[str, Any], step: int) -> None:
    """Store `state` and how many steps are done. Whenever the process dies, `path` holds one whole checkpoint.

    Written first to a file of another name in the same folder, with `fsync`, so that the bytes are on the disk before
    the name points to them; `os.replace` then is atomic (POSIX rename). Raises ValueError for a step below 0.
    """
    check_whole("step", step, "how many steps are done", least=0)
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.unfinished")
    with open(unfinished, "wb") as file:
        torch.save({"state": state, "step": int(step)}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def load(path: Path | str) -> tuple[dict[str, Any], int] | None:
    """(state, steps done) of the last whole checkpoint; None if there is none yet."""
    try:
        stored = torch.load(path, weights_only=True)
    except FileNotFoundError:
        return None
    return stored["state"], stored["step"]
