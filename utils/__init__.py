"""Data parallelism, predicted, built, run and measured.

Four rooms: `theory` predicts, `runtime` runs, `views` shows, `checks` judges. The names a notebook uses most are
reached from here, each imported only when first asked for, so that `import utils.theory` stays free of torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME_OF = {
    "launch": "utils.runtime.launch",
    "Cluster": "utils.runtime.cluster",
    "device": "utils.runtime.device",
    "all_gather_single": "utils.runtime.collectives",
    "reduce_scatter_single": "utils.runtime.collectives",
    "check": "utils.checks",
    "scoreboard": "utils.checks",
    "prediction": "utils.checks.prediction",
}

__all__ = list(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a public name from the room it lives in, on first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'utils' has no attribute {name!r}; it offers {', '.join(_HOME_OF)}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
