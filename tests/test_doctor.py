"""The doctor: one line for each finding, a remedy for what is wrong, and status 1 if nothing can run."""

import subprocess
import sys

import pytest

from utils import doctor
from utils.__main__ import main


def test_this_machine_can_run_the_suite(capsys):
    assert doctor.doctor() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(doctor.examine())
    assert not any(line.startswith("FATAL") for line in lines)


def test_quiet_prints_only_what_needs_a_look(monkeypatch, capsys):
    bad = doctor.Finding("cores", "1", "Expect everything to be slow.")
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("Python", "3.12"), bad])
    assert doctor.doctor(quiet=True) == 0
    assert capsys.readouterr().out == "note  cores: 1. Expect everything to be slow.\n"


def test_fatal_finding_gives_status_1(monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.torch("2.10.1")])
    assert doctor.doctor() == 1


@pytest.mark.parametrize(
    ("finding", "fatal", "words"),
    [
        (doctor.python((3, 10)), True, "3.11 to 3.13"),
        (doctor.python((3, 14)), False, "3.11 to 3.13"),
        (doctor.torch("2.10.1"), True, "2.11 to 2.14"),
        (doctor.torch("2.15.0+cpu"), False, "2.11 to 2.14"),
        (doctor.start_method("darwin"), False, "takes seconds"),
    ],
)
def test_what_is_out_of_range_has_a_remedy(finding, fatal, words):
    assert finding.fatal is fatal
    assert words in finding.remedy


@pytest.mark.parametrize("version", ["2.11.0", "2.13.0+cpu", "2.14.1"])
def test_supported_torch_is_sound(version):
    assert doctor.torch(version).remedy == ""


def test_another_package_named_utils_is_fatal_and_named(tmp_path):
    (tmp_path / "utils.py").write_text("")
    finding = doctor.ours(tmp_path)
    assert finding.fatal
    assert f"`utils` is found at {tmp_path / 'utils.py'}" in finding.remedy


def test_kernel_of_another_python_is_fatal_and_named(tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(
        '{"argv": ["/elsewhere/python", "-m", "ipykernel_launcher"], "display_name": "x", "language": "python"}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    finding = doctor.kernel()
    assert finding.fatal
    assert "/elsewhere/python" in finding.seen


def test_doctor_imports_no_torch():
    code = "import sys; from utils.doctor import doctor; doctor(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_commands_refuse_what_they_cannot_do_in_one_sentence(capsys):
    assert main(["refresh", "no_such.ipynb"]) == 1
    assert "There is no notebook" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["dance"])
    assert "invalid choice: 'dance'" in capsys.readouterr().err
