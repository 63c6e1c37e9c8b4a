"""Looks at the machine: can the suite run here, and what will be missing.

Each finding is one line. A fatal one means that notebooks cannot run until its remedy is applied; the others say what
works differently on this machine.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ((3, 11), (3, 13))
TORCHES = ((2, 11), (2, 14))


@dataclass(frozen=True)
class Finding:
    """One thing looked at. Sound when it has no remedy."""

    subject: str
    seen: str
    remedy: str = ""
    fatal: bool = False

    def __str__(self) -> str:
        mark = "ok   " if not self.remedy else "FATAL" if self.fatal else "note "
        return f"{mark} {self.subject}: {self.seen}" + (f". {self.remedy}" if self.remedy else "")


def doctor(quiet: bool = False) -> int:
    """Print the findings (with `quiet` only those that need a look) and return the exit status: 1 if one is fatal."""
    findings = examine()
    for finding in findings:
        if finding.remedy or not quiet:
            print(finding)
    return int(any(finding.fatal for finding in findings))


def examine() -> list[Finding]:
    """All findings on this machine, in the order in which a person would mend them."""
    return [python(sys.version_info[:2]), torch(), ours(), kernel(), start_method(), counters(), links(), cores()]


def _version(text: str) -> tuple[int, int]:
    major, minor = re.match(r"(\d+)\.(\d+)", text).groups()
    return int(major), int(minor)


def _range(oldest: tuple[int, int], newest: tuple[int, int]) -> str:
    return f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"


def python(version: tuple[int, int]) -> Finding:
    """Whether this Python is one that the suite is tested with."""
    seen = f"{version[0]}.{version[1]} at {sys.executable}"
    if version < PYTHONS[0]:
        return Finding("Python", seen, f"Make the environment with Python {_range(*PYTHONS)}.", fatal=True)
    if version > PYTHONS[1]:
        return Finding("Python", seen, f"The suite is tested with {_range(*PYTHONS)}.")
    return Finding("Python", seen)


def torch(installed: str | None = None) -> Finding:
    """Whether torch is there, in a version that the suite is tested with. Does not import it."""
    try:
        installed = installed or metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Finding(
            "torch", "not installed", f"Run `{sys.executable} -m pip install -r requirements.txt`.", fatal=True
        )
    if _version(installed) < TORCHES[0]:
        return Finding(
            "torch",
            installed,
            f"Install one of {_range(*TORCHES)}: `{sys.executable} -m pip install torch==2.13.0`.",
            fatal=True,
        )
    if _version(installed) > TORCHES[1]:
        return Finding("torch", installed, f"The suite is tested with {_range(*TORCHES)}.")
    return Finding("torch", installed)


def ours(folder: Path = ROOT / "notebooks") -> Finding:
    """Whether `import utils` in a notebook of `folder` gives this suite's package."""
    answer = subprocess.run(
        [sys.executable, "-c", "import suite_check"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    if answer.returncode == 0:
        return Finding("package utils", "this suite's")
    reason = answer.stderr.strip().splitlines()[-1]
    if "No module named 'suite_check'" in reason:
        return Finding(
            "package utils",
            "not installed",
            f"Run `{sys.executable} -m pip install -e .` in the repository.",
            fatal=True,
        )
    return Finding("package utils", "another one", reason.removeprefix("ImportError: "), fatal=True)


def kernel() -> Finding:
    """Whether notebooks start this very Python: kernel `python3` may have been registered from another environment."""
    absent = Finding(
        "kernel python3", "not found", f"Run `{sys.executable} -m pip install -r requirements.txt`.", fatal=True
    )
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ModuleNotFoundError:
        return absent
    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return absent
    # jupyter_client starts its own Python for these names
    own_names = {"python", f"python{sys.version_info[0]}", f"python{sys.version_info[0]}.{sys.version_info[1]}"}
    started = sys.executable if command in own_names else command
    if Path(started).absolute() == Path(sys.executable).absolute():
        return Finding("kernel python3", "this Python")
    return Finding(
        "kernel python3",
        f"starts {started}",
        f"Run `{sys.executable} -m ipykernel install --sys-prefix --name python3`.",
        fatal=True,
    )


def start_method(platform: str = sys.platform) -> Finding:
    """How ranks are started: from a fork server where the system has one that works with gloo."""
    if platform == "linux" and "forkserver" in multiprocessing.get_all_start_methods():
        return Finding("starting ranks", "fork server, about 0.2 s a call")
    return Finding("starting ranks", "spawn", "Starting ranks takes seconds instead of tenths of a second.")


def counters() -> Finding:
    """Whether the system counts what a socket sends, which fills the column of measured wire bytes."""
    from utils.runtime.wire import read_counters

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        there = bool(read_counters())
    if there:
        return Finding("TCP counters", "readable")
    return Finding("TCP counters", "none", "Bytes on the wire show as 'not measurable here'; all else works.")


def links() -> Finding:
    """Whether the kernel makes links of a chosen speed between ranks, or the recorder does."""
    from utils.runtime.cluster import why_emulated

    try:
        obstacle = why_emulated()
    except ValueError as error:
        return Finding("links between nodes", "none", str(error))
    if obstacle:
        return Finding(
            "links between nodes", f"emulated, for {obstacle}", "Bytes on the links are not measurable here."
        )
    return Finding("links between nodes", "the kernel's own")


def cores() -> Finding:
    """How many cores there are for ranks."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if count < 2:
        return Finding("cores", str(count), "Ranks take turns on one core: expect everything to be slow.")
    return Finding("cores", str(count))
