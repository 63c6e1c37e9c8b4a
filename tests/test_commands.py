"""`python -m utils`: what it says to what it cannot do."""

import sys

import pytest

from utils import __main__ as commands


def test_alone_it_lists_its_commands(capsys):
    assert commands.main([]) == 2
    said = capsys.readouterr().out
    assert all(name in said for name in ("build-labs", "refresh", "bench", "doctor"))


def test_options_are_handed_on_to_one_benchmark(monkeypatch):
    called = []
    monkeypatch.setattr(commands.subprocess, "call", lambda line: called.append(line) or 0)
    assert commands.main(["bench", "ring", "--rounds", "3"]) == 0
    ((python, file, *rest),) = called
    assert (python, file.name, rest) == (sys.executable, "ring.py", ["--rounds", "3"])


def test_options_for_several_benchmarks_are_refused(monkeypatch, capsys):
    monkeypatch.setattr(commands.subprocess, "call", lambda line: pytest.fail("it ran"))
    assert commands.main(["bench", "ring", "links", "--quick"]) == 1
    assert "--quick is for one benchmark" in capsys.readouterr().err


def test_what_a_command_does_not_know_is_named(capsys):
    with pytest.raises(SystemExit):
        commands.main(["doctor", "--loud"])
    assert "doctor knows no --loud" in capsys.readouterr().err
