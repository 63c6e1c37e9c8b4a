"""An account of skipped tests, as a pytest plugin: each reason with its count, and in CI none that is not expected.

A test that is skipped where it should have run looks like a passed one. In CI (the variable CI is set) a skip whose
reason or test is not listed in tests/expected_skips.txt therefore makes the session fail.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

EXPECTED_SKIPS = Path(__file__).parent / "expected_skips.txt"


@dataclass(frozen=True)
class Skip:
    """A test that was not run, and the reason it gave."""

    test: str
    reason: str


def read_expected(text: str) -> list[re.Pattern[str]]:
    """The patterns of an expected-skips file: a line `PATTERN  # why`, in which `*` stands for anything.

    Raises ValueError for a line that does not say why.
    """
    patterns = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, why = line.partition("  # ")
        if not why.strip():
            raise ValueError(f"line {number}, `{line}`, does not say why: write `PATTERN  # why`")
        patterns.append(re.compile(".*".join(map(re.escape, pattern.strip().split("*"))), re.DOTALL))
    return patterns


class SkipAccount:
    """Counts skips during a session and judges them at its end."""

    def __init__(self, expected: list[re.Pattern[str]], strict: bool) -> None:
        self.expected = expected
        self.strict = strict
        self.skips: list[Skip] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a skipped test; an expected failure (xfail) is none."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skips.append(Skip(report.nodeid, _reason(report)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that skipped itself."""
        if report.skipped:
            self.skips.append(Skip(report.nodeid, _reason(report)))

    @property
    def unexpected(self) -> list[Skip]:
        """The skips that no pattern covers, neither by reason nor by the test's name."""
        return [s for s in self.skips if not any(p.fullmatch(s.reason) or p.fullmatch(s.test) for p in self.expected)]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In CI an unexpected skip turns a green session red."""
        if self.strict and self.unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the account."""
        if not self.skips:
            return
        terminalreporter.section("skipped tests")
        for reason, count in Counter(skip.reason for skip in self.skips).most_common():
            terminalreporter.write_line(f"{count} skipped: {reason}")
        if self.strict and self.unexpected:
            terminalreporter.write_line(f"Not listed in tests/{EXPECTED_SKIPS.name}, so the session fails:", red=True)
            for skip in self.unexpected:
                terminalreporter.write_line(f"  {skip.test}: {skip.reason}", red=True)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option for the tests of this file."""
    parser.addoption("--expected-skips", type=Path, default=EXPECTED_SKIPS, help="file of skips that CI accepts")


def pytest_configure(config: pytest.Config) -> None:
    """Open the account."""
    try:
        expected = read_expected(config.option.expected_skips.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{config.option.expected_skips}: {error}") from None
    config.pluginmanager.register(SkipAccount(expected, strict=bool(os.environ.get("CI"))), "skip-account")
