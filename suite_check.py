"""Stops with one sentence if another package named `utils` stands in front of this suite's.

`utils` is a common name. Every notebook imports this module first, because this name is not.
"""

from importlib.util import find_spec
from pathlib import Path

_OURS = Path(__file__).resolve().parent / "utils" / "__init__.py"


def refuse_another_utils() -> None:
    """Raise ImportError, naming the intruder, unless `import utils` gives this suite's package."""
    spec = find_spec("utils")
    found = Path(spec.origin).resolve() if spec and spec.origin else None
    if found != _OURS:
        where = found or (next(iter(spec.submodule_search_locations)) if spec else "nowhere")
        raise ImportError(
            f"`utils` is found at {where}, not at {_OURS.parent}: another module of that name is in the way. "
            "Rename it or uninstall it, or start the notebook from another folder; then restart the kernel."
        )


refuse_another_utils()
