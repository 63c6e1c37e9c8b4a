"""Calls a function in a process in which `hash` of a text, and so the order of a set, is another one.

All ranks come from one fork server, and inherit its hash seed: what leans on it looks the same in each of them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from utils.checks.verdict import Mistake

PATIENCE = 120.0  # seconds, for a busy machine on which the function imports torch
_CHILD = """
import pickle, sys
from contextlib import redirect_stdout
from utils.runtime import ship
with redirect_stdout(sys.stderr):
    answer, calls = ship.unpack(pickle.load(sys.stdin.buffer))
    values = [answer(*arguments) for arguments in calls]
sys.stdout.buffer.write(pickle.dumps(values))
"""


def values_elsewhere(answer: Any, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What each call returns there, plain values all. Raises Mistake with the child's last line if it fails."""
    from utils.runtime import ship

    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        child = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=pickle.dumps(ship.pack((answer, list(calls)))),
            env=environment,
            capture_output=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise Mistake(f"in a process of its own your function is not done after {PATIENCE:.0f} s.") from None
    if child.returncode:
        said = child.stderr.decode(errors="replace").strip().splitlines()
        raise Mistake(f"in a process of its own your function fails: {said[-1] if said else 'it says nothing'}")
    return pickle.loads(child.stdout)
