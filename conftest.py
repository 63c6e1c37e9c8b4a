"""What every pytest session here uses: repaired nbval on lessons and solved labs, and an account of skipped tests."""

from __future__ import annotations

from pathlib import Path

pytest_plugins = ["tests.notebooks.nbval_repairs", "tests.skip_account"]

# labs/ is what students open: without outputs, so there is nothing to compare. Its tests are in tests/notebooks/.
_ROOMS_WITH_OUTPUTS = ("notebooks", "solutions")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keep nbval away from all notebooks but those that are committed with outputs."""
    if collection_path.suffix != ".ipynb":
        return None  # no opinion
    return None if collection_path.parent.name in _ROOMS_WITH_OUTPUTS else True
