"""Skipped tests are counted with their reasons; in CI one that is not expected makes the session fail."""

import pytest

from tests.notebooks.planted import SKIPS, run_pytest
from tests.skip_account import EXPECTED_SKIPS, read_expected

TESTS = """
import pytest

def test_that_runs():
    pass

@pytest.mark.skipif(True, reason="needs 2 GPUs [here]")
def test_on_gpus():
    pass

@pytest.mark.parametrize("n", [1, 2])
def test_twice(n):
    pytest.skip("no such counter")

@pytest.mark.xfail(reason="known")
def test_expected_failure():
    assert False
"""


@pytest.fixture
def session(tmp_path):
    def run(expected: str, **environment: str):
        (tmp_path / "test_x.py").write_text(TESTS)
        (tmp_path / "expected.txt").write_text(expected)
        return run_pytest(tmp_path, SKIPS, "--expected-skips=expected.txt", **environment)

    return run


def test_reasons_are_counted_and_outside_ci_nothing_fails(session):
    outcome = session("")
    assert outcome.status == pytest.ExitCode.OK
    assert "2 skipped: no such counter" in outcome.text
    assert "1 skipped: needs 2 GPUs [here]" in outcome.text


def test_in_ci_an_unexpected_skip_fails_the_session_and_is_named(session):
    outcome = session("needs * GPUs [here]  # none in CI\n", CI="true")
    assert outcome.status == pytest.ExitCode.TESTS_FAILED
    assert "test_x.py::test_twice[2]: no such counter" in outcome.text
    assert "test_x.py::test_on_gpus:" not in outcome.text


def test_in_ci_skips_listed_by_reason_or_by_test_are_accepted(session):
    outcome = session("*GPUs*  # none in CI\ntest_x.py::test_twice[*]  # not on this system\n", CI="true")
    assert outcome.status == pytest.ExitCode.OK


def test_module_that_skips_itself_is_counted(tmp_path):
    (tmp_path / "test_y.py").write_text("import pytest\npytest.importorskip('no_such_module_anywhere')\n")
    (tmp_path / "test_z.py").write_text("def test_z(): pass\n")
    outcome = run_pytest(tmp_path, SKIPS, CI="true")
    assert outcome.status == pytest.ExitCode.TESTS_FAILED
    assert "1 skipped: could not import 'no_such_module_anywhere'" in outcome.text


def test_line_without_a_why_is_refused(session):
    outcome = session("no such counter\n")
    assert outcome.status == pytest.ExitCode.USAGE_ERROR
    assert "line 1, `no such counter`, does not say why: write `PATTERN  # why`" in outcome.text


@pytest.mark.parametrize(
    "reason", ["needs chromium; there is no GPU", "got empty parameter set for (lab)", "no such counter"]
)
def test_committed_list_is_readable_and_covers_no_skip_that_hides_a_fault(reason):
    assert not any(pattern.fullmatch(reason) for pattern in read_expected(EXPECTED_SKIPS.read_text()))
