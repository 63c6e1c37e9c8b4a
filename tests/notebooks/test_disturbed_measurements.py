"""A lesson shows what it measured: with a measurement falsified by 10%, a checked output changes.

A lesson for which nothing changes prints constants, or a verdict that cannot fail.
"""

from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbval.plugin import IPyNbCell, coalesce_streams, get_sanitize_patterns, nocolors

from tests.notebooks.planted import code, notebook_of
from utils.notebooks.execute import run_notebook, tidy
from utils.notebooks.files import ROOT, place, read_notebook, tags_of, write_notebook
from utils.notebooks.hygiene import IGNORED

# Which measurements a lesson takes. Those that it does not take cannot change anything in it.
SOURCES = {
    "00_ranks_and_collectives": ("counter",),
    "01_plain_data_parallel": ("counter", "clock", "ledger", "recorder"),
    "02_buckets_and_overlap": ("clock", "ledger", "recorder"),
    "03_ring_cost": ("counter", "clock", "recorder"),
    "04_zero": ("counter", "ledger", "recorder"),
    "05_fsdp": ("counter", "ledger", "recorder"),
    "06_hsdp": ("counter", "ledger", "recorder"),
    "07_infrastructure": ("counter", "clock"),
    "08_which_one_when": ("counter",),
    "calculators": (),  # predicts only
}
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Each case runs a whole lesson: one in every `make test`, one more in CI, the others in `make test-long`.
RUNS = {("00_ranks_and_collectives", "counter"): (), ("01_plain_data_parallel", "ledger"): pytest.mark.rest}


class Comparison:
    """nbval's own comparison of a cell's outputs, outside a pytest session over notebooks."""

    compare_outputs = IPyNbCell.compare_outputs
    sanitize = IPyNbCell.sanitize
    colors = nocolors
    skip = (
        "metadata",
        "traceback",
        "prompt_number",
        "output_type",
        "name",
        "execution_count",
        "image/png",
        "image/jpeg",
    )

    def __init__(self) -> None:
        patterns = get_sanitize_patterns(Path(__file__).with_name("sanitize.cfg").read_text())
        self.parent = SimpleNamespace(sanitize_patterns=dict(patterns), skip_compare=self.skip)

    def format_output_compare(self, *difference: object) -> None:
        """Nobody reads the difference here: that there is one is enough."""


def changed_cells(path: Path, source: str) -> list[str]:
    """The checked cells whose outputs differ from the stored ones when measurements of `source` are falsified."""
    stored = read_notebook(path)
    running = read_notebook(path)
    first = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.notebooks import disturb\ndisturb.{source}()"
    running.cells.insert(0, nbformat.v4.new_code_cell(first))
    fresh = tidy(run_notebook(running, path, allow_errors=True, timeout=120))
    assert not fresh.cells[0].outputs, fresh.cells[0].outputs
    pairs = zip(stored.cells, fresh.cells[1:], strict=True)
    checked = [(old, new) for old, new in pairs if old.cell_type == "code" and IGNORED not in tags_of(old)]
    compare = Comparison().compare_outputs
    return [
        place(path, old)
        for old, new in checked
        if not compare(coalesce_streams(new.outputs), coalesce_streams(old.outputs))
    ]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_says_what_it_measures(path):
    assert path.stem in SOURCES, f"add {path.stem} to SOURCES, with the measurements that it takes"


@pytest.mark.parametrize(
    ("path", "source"),
    [
        pytest.param(
            path,
            source,
            marks=RUNS.get((path.stem, source), pytest.mark.long),
            id=f"{path.stem}-{source}",
        )
        for path in LESSONS
        for source in SOURCES.get(path.stem, ())
    ],
)
def test_disturbed_measurement_changes_a_checked_output(path, source):
    assert changed_cells(path, source), f"no checked output of {path.name} depends on its {source}"


MEASURE = """
import time
import torch
import torch.distributed as dist
from utils import launch
from utils.runtime.ledger import Ledger

def true_clock():
    return time.clock_gettime(time.CLOCK_MONOTONIC)

def everyone(rank):
    data = torch.ones(1 << 18)
    dist.all_reduce(data)  # the ranks meet
    start, true_start = time.perf_counter(), true_clock()
    dist.all_reduce(data)
    time.sleep(0.5)
    own, true = time.perf_counter() - start, true_clock() - true_start
    dist.all_reduce(data)
    return own, true, Ledger(weights=data).at_rest()

run = launch(everyone, 2)
size = 3 * (4 << 18)
own, true, held = run.values[0]
_, first, last = run.timeline[0]
"""
PRINT = {
    "counter": "print(f'{run.wire_bytes[0].sent / size:.2f} S sent')",
    "recorder": "print(f'{sum(op.bytes for op in run.timeline[0]) / size:.2f} S all-reduced')",
    "ledger": "print(f'{held.weights / size:.2f} S held, {Ledger(weights=torch.ones(10)).at_rest().total} B here')",
    "clock": "print(f'{own / true:.1f} and {(last.issued_at - first.issued_at) / true:.1f} of the true time')",
    "constant": "print(f'{size} bytes, and of course as predicted')",
}


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """A lesson with one checked cell for each source, and one that depends on none. Its cells carry these names."""
    path = tmp_path_factory.mktemp("disturbed") / "90_fixture.ipynb"
    printing = [code(source, id=name) for name, source in PRINT.items()]
    write_notebook(tidy(run_notebook(notebook_of(code(MEASURE), *printing), path)), path)
    return path


@pytest.mark.parametrize(
    "source",
    [
        "nothing",
        "clock",
        *(pytest.param(source, marks=pytest.mark.rest) for source in ("counter", "recorder", "ledger")),
    ],
)
def test_only_the_cell_that_shows_the_source_changes(lesson, source):
    changed = [cell.split(", cell ")[1].split()[0] for cell in changed_cells(lesson, source)]
    assert changed == ([] if source == "nothing" else [source])
