"""The rooms of the suite: what they may import, and what importing them costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[1] / "utils"
MAY_IMPORT = {
    "theory": set(),
    "runtime": {"theory"},
    "views": {"theory"},
    "checks": {"theory", "runtime"},
}
# What theory or a run gave back draws itself, but only when it is shown.
LAZILY = {
    ("runtime/run.py", "views"),
    ("runtime/holdings.py", "views"),
    ("runtime/cluster.py", "views"),
    ("runtime/dry_run/result.py", "views"),
    ("theory/explain.py", "views"),
    ("theory/events.py", "views"),
    ("theory/breakdown.py", "views"),
}


def imported_rooms(file):
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = name.split(".")
            if parts[0] == "utils" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("room", list(MAY_IMPORT))
def test_arrows_point_one_way(room):
    for file in (SUITE / room).rglob("*.py"):
        for other in imported_rooms(file):
            where = file.relative_to(SUITE).as_posix()
            assert other in MAY_IMPORT[room] | {room} or (where, other) in LAZILY, f"{where} imports utils.{other}"


def test_theory_imports_no_torch_and_no_widgets():
    modules = [
        ".".join(file.relative_to(SUITE.parent).with_suffix("").parts)
        for file in (SUITE / "theory").rglob("*.py")
        if file.name != "__init__.py"
    ]
    code = f"import sys, utils.theory, {', '.join(modules)}; print([m for m in sys.modules if '.' not in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "ipywidgets", "matplotlib", "IPython"} & set(ast.literal_eval(done.stdout))


def test_files_are_small():
    for file in SUITE.rglob("*.py"):
        assert len(file.read_text().splitlines()) <= 300, file.relative_to(SUITE)


def test_another_package_named_utils_is_refused_with_its_path(tmp_path):
    (tmp_path / "utils.py").write_text("launch = None\n")
    done = subprocess.run([sys.executable, "-c", "import suite_check"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: `utils` is found at ") and str(tmp_path / "utils.py") in last
    assert "Rename it or uninstall it" in last


def test_unknown_public_names_are_refused_with_the_known_ones():
    import utils

    with pytest.raises(AttributeError, match=r"no attribute 'lunch'; it offers launch"):
        _ = utils.lunch
