"""Runs notebooks from top to bottom and stores what they gave.

What is stored depends on the cells alone: no widget state, no times of execution, no trace of the machine's Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from utils.notebooks.errors import NotebookError
from utils.notebooks.files import ROOT, notebook_metadata, place, read_notebook, shown, write_notebook

CELL_TIMEOUT = 300.0
_MOST_OUTPUTS = 100  # of a cell that is passed over if it tells more
_WIDGET = "application/vnd.jupyter.widget-view+json"
_CELL_METADATA_OF_A_RUN = ("execution", "ExecuteTime", "collapsed", "scrolled", "trusted")


def refresh(paths: list[Path] | None = None, root: Path = ROOT, report: Callable[[str], None] = print) -> None:
    """Execute notebooks and store their outputs for review.

    Args:
        paths: The notebooks; None takes all of notebooks/ and solutions/.
        root: The folder that holds notebooks/ and solutions/.
        report: Called with one line for each notebook stored.

    Raises NotebookError, naming notebook and cell, at the first cell that fails; that notebook's file stays as it was.
    """
    if not paths:
        paths = [path for room in ("notebooks", "solutions") for path in sorted((root / room).glob("*.ipynb"))]
    for path in paths:
        before = read_notebook(path)
        after = tidy(run_notebook(before, path))
        write_notebook(after, path)
        report(f"{shown(path)}: {sum(cell.cell_type == 'code' for cell in after.cells)} code cells run and stored")


def run_notebook(
    notebook: NotebookNode,
    path: Path,
    allow_errors: bool = False,
    timeout: float = CELL_TIMEOUT,
    go_on: bool = False,
    environment: Mapping[str, str] | None = None,
) -> NotebookNode:
    """Execute a notebook in a fresh kernel of this Python, in the folder of `path`; changes and returns `notebook`.

    Args:
        notebook: What to run; it need not be stored anywhere.
        path: Names the notebook in messages; its folder is the kernel's working directory.
        allow_errors: Go on after a cell that raises; its output then holds the error.
        timeout: Seconds that one cell may take.
        go_on: Interrupt a cell that takes longer, and go on with the next one if that has stopped it. What cells print
            is passed over then, so that one which prints without end fills no memory.
        environment: Variables that the kernel has besides those of this process.

    Raises NotebookError, naming the cell, when a cell fails, hangs or ends the kernel.
    """
    running: list[NotebookNode] = []
    client = (_Untold if go_on else NotebookClient)(
        notebook,
        kernel_name="python3",
        resources={"metadata": {"path": str(Path(path).resolve().parent)}},
        timeout=timeout,
        interrupt_on_timeout=go_on,
        # A cell that survives its interrupt, as `except: pass` in a loop does, would else be interrupted for ever.
        error_on_timeout={"ename": "KeyboardInterrupt", "evalue": "", "traceback": []} if go_on else None,
        raise_on_iopub_timeout=go_on,
        iopub_timeout=15 if go_on else 4,
        allow_errors=allow_errors,
        coalesce_streams=True,
        store_widget_state=False,
        record_timing=False,
        shell_timeout_interval=1,  # so often does nbclient look whether the kernel still lives
        shutdown_kernel="immediate",
        on_cell_start=lambda cell, cell_index: running.append(cell),
        # `!command` with an exit code other than 0 raises instead of passing unseen; the kernel's own log shows errors
        extra_arguments=["--InteractiveShell.system_raise_on_error=True", "--IPKernelApp.log_level=ERROR"],
    )
    try:
        # Under pytest, which sets this variable, ipykernel would not show what child processes print.
        given = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        client.execute(env=given | dict(environment or {}))
    except CellTimeoutError:
        raise NotebookError(f"{place(path, running[-1])} did not finish within {timeout:g} seconds.") from None
    except DeadKernelError:
        raise NotebookError(f"{place(path, running[-1])} ended the kernel.") from None
    except CellExecutionError as error:
        raise NotebookError(
            f"{place(path, running[-1])} failed with {error.ename}: {error.evalue}\n{error.traceback}"
        ) from None
    return notebook


class _Untold(NotebookClient):
    """Keeps errors and what is displayed, the first of it alone; nothing that is printed."""

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> Any:
        if msg["msg_type"] == "stream" or len(cell.outputs) > _MOST_OUTPUTS:
            return None
        return super().process_message(msg, cell, cell_index)


def tidy(notebook: NotebookNode) -> NotebookNode:
    """Remove from an executed notebook what would differ on the next run or machine; changes and returns it."""
    notebook.metadata = notebook_metadata()
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        for name in _CELL_METADATA_OF_A_RUN:
            cell.metadata.pop(name, None)
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            # The state behind a widget is not stored; without its view, readers see the static picture in the bundle.
            output.get("data", {}).pop(_WIDGET, None)
        cell.outputs = [output for output in cell.outputs if output.output_type == "stream" or output.get("data", True)]
    return notebook
