"""`python -m utils COMMAND`: what one does to the suite from outside a notebook."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.grade import add_options as grade_options
from utils.notebooks.errors import NotebookError
from utils.plan import add_options as plan_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Bad input gives one sentence and status 1."""
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        parser.print_help()
        return 2
    options, rest = parser.parse_known_args(given)
    if rest and options.command != "bench":
        known = f"`python -m utils {options.command} --help` lists what it knows"
        parser.error(f"{options.command} knows no {' '.join(rest)}; {known}.")
    options.rest = rest
    try:
        return options.run(options)
    except NotebookError as error:
        print(f"python -m utils {options.command}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m utils", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    labs = commands.add_parser("build-labs", help="write labs/ from solutions/")
    labs.add_argument("--force", action="store_true", help="overwrite labs that have been worked in")
    labs.set_defaults(run=_build_labs)

    refresh = commands.add_parser("refresh", help="execute notebooks and store their outputs for review")
    refresh.add_argument(
        "notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="default: notebooks/ and solutions/"
    )
    refresh.set_defaults(run=_refresh)

    run = commands.add_parser(
        "run", help="run a notebook's cells without Jupyter, also on the ranks of a job (torch.distributed.run)"
    )
    run.add_argument("notebook", type=Path, metavar="NOTEBOOK")
    run.set_defaults(run=_run)

    bench = commands.add_parser("bench", help="run benchmarks; each ends with one JSON line per figure")
    bench.add_argument(
        "names", nargs="*", metavar="NAME", help="default: every file of benchmarks/; of one, options are handed on"
    )
    bench.set_defaults(run=_bench)

    plan_options(commands.add_parser("plan", help="say which strategy a training job should take, what fits, and why"))
    grade_options(commands.add_parser("grade", help="judge labs that others have worked in, and sum up their mistakes"))

    doctor = commands.add_parser("doctor", help="say whether the suite can run on this machine, and what is missing")
    doctor.add_argument("--quiet", action="store_true", help="print only what needs a look")
    doctor.set_defaults(run=_doctor)
    return parser


# Each command imports what it needs: `doctor` must work where half of the packages are missing.


def _build_labs(options: argparse.Namespace) -> int:
    from utils.notebooks.build_labs import build_labs
    from utils.notebooks.files import shown

    changed = build_labs(force=options.force)
    for path in changed:
        print(f"{shown(path)} written")
    if not changed:
        print("labs/ is already what solutions/ gives")
    return 0


def _refresh(options: argparse.Namespace) -> int:
    from utils.notebooks.execute import refresh

    refresh(options.notebooks)
    return 0


def _run(options: argparse.Namespace) -> int:
    from utils.notebooks.run import run

    return run(options.notebook)


def _bench(options: argparse.Namespace) -> int:
    from utils.notebooks.files import ROOT

    known = sorted(file.stem for file in (ROOT / "benchmarks").glob("*.py") if "__main__" in file.read_text())
    unknown = [name for name in options.names if name not in known]
    if unknown:
        raise NotebookError(f"there is no benchmark {unknown[0]!r}; there are {', '.join(known)}.")
    if options.rest and len(options.names) != 1:
        raise NotebookError(
            f"{' '.join(options.rest)} is for one benchmark: name it, as in `bench ring {options.rest[0]}`."
        )
    codes = [
        subprocess.call([sys.executable, ROOT / "benchmarks" / f"{name}.py", *options.rest])
        for name in options.names or known
    ]
    return int(any(codes))


def _doctor(options: argparse.Namespace) -> int:
    from utils.doctor import doctor

    return doctor(quiet=options.quiet)


if __name__ == "__main__":
    sys.exit(main())
