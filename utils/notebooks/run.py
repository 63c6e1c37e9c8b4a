"""`python -m utils run`: runs a notebook's code cells in order, alone or on every rank of a job, without Jupyter.

In a job (`python -m torch.distributed.run … -m utils run NOTEBOOK`) each process runs all cells; `launch` and `check`
bring them together, and so does the end of each cell. Rank 0 alone is heard. No cell runs after one that has failed on
any rank.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any

from utils.notebooks.without_jupyter import code_cells, make_do_without, show

# Seconds in which rank 0 can say what went wrong: a job's launcher ends all processes when it sees the first one leave.
_RANK_0_LEAVES = 1.0


def run(path: Path) -> int:
    """Run the notebook; returns the exit status.

    It is 0 if no cell raised on any rank and, for a notebook of solutions/, every exercise of its lab was checked and
    passed. Raises NotebookError for a file that is no notebook.
    """
    path = Path(path)
    cells = code_cells(path)
    heard = int(os.environ.get("RANK") or 0) == 0
    last_words = sys.stderr if heard else _be_silent()
    if heard:
        sys.stdout.reconfigure(line_buffering=True)
    from utils.runtime.real_job.joining import is_in_job, join_job

    make_do_without()
    job = join_job() if is_in_job() else None
    os.chdir(path.resolve().parent)  # where a notebook's kernel is
    sys.path.insert(0, os.getcwd())
    main = types.ModuleType("__main__")  # functions of this module's name travel to ranks by value
    main.__dict__["display"] = show
    sys.modules["__main__"] = main
    for number, source in enumerate(cells, start=1):
        report = _run_cell(main.__dict__, f"Cell In[{number}]", source, job)
        if report:
            if job:
                report = job.failed(report)
            if report:
                print(f"{path.name}: {report}", file=last_words, flush=True)
            if not heard:
                time.sleep(_RANK_0_LEAVES)
            return 1
    missing = _not_passed(path) if path.resolve().parent.name == "solutions" else ()
    if heard:
        _sum_up(path, len(cells), job, missing)
    elif missing:
        time.sleep(_RANK_0_LEAVES)
    return int(bool(missing))


def _run_cell(names: dict[str, Any], file: str, source: str, job: Any) -> str:
    """Run one cell, with the other ranks if there are any; "" or a report of what it raised."""
    from utils.runtime.real_job.words import JobStopped

    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        body = ast.parse(source, file).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), file, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
            if value is not None and not source.rstrip().endswith(";"):
                show(value)
        if job:
            job.once(f"the end of {file}", lambda: None)
        return ""
    except JobStopped as stopped:
        return str(stopped)
    except BaseException as error:  # also an exit() of the cell's own, and an interrupt
        return f"{file} raised\n{_told(error)}"


def _told(error: BaseException) -> str:
    """The traceback from the first line that is a cell's; of errors that are a report already, the report."""
    if hasattr(error, "_render_traceback_"):
        return "\n".join(error._render_traceback_())
    told = traceback.TracebackException.from_exception(error)
    outside = next((i for i, frame in enumerate(told.stack) if frame.filename.startswith("Cell In[")), len(told.stack))
    told.stack = traceback.StackSummary.from_list(told.stack[outside:])
    return "".join(told.format()).rstrip()


def _not_passed(path: Path) -> tuple[str, ...]:
    """The exercises of a solution's lab, and the others that it checked, of which the last verdict is not "passed"."""
    from utils.checks import verdicts
    from utils.checks.exercise import exercises_of, lab_names

    lab = path.name[:2]
    last = {verdict.exercise_id: verdict.passed for verdict in verdicts()}
    asked = [exercise.id for exercise in exercises_of(lab)] if lab in lab_names() else []
    return tuple(each for each in dict.fromkeys([*asked, *last]) if not last.get(each, False))


def _sum_up(path: Path, cells: int, job: Any, missing: tuple[str, ...]) -> None:
    from utils.checks import verdicts

    where = f" on {job.size} rank{'s' * (job.size > 1)}, {job.nodes} host{'s' * (job.nodes > 1)}" if job else ""
    passed = sum(verdict.passed for verdict in verdicts())
    print(f"{path.name}: {cells} cells run{where}; {passed} of {len(verdicts())} checks passed")
    if missing:
        print(f"{path.name}: not passed: {', '.join(missing)}", file=sys.stderr)


def _be_silent() -> Any:
    """Let nothing be seen of what this process prints. Returns a stream that is seen all the same."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    seen = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return seen
