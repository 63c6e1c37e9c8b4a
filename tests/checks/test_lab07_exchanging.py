"""07.train's check sees when a file of an earlier step is emptied, removed or renamed, and ends the rank there.

Each case is a process of its own: an audit hook stays for the rest of a process.
"""

import signal
import subprocess
import sys

import pytest

from utils.notebooks.files import ROOT

DEEDS = """
import os, pathlib, runpy, shutil, sys
Watch = runpy.run_path("utils/checks/lab07/exchanging.py")["Watch"]  # without torch, which takes a second
shared = pathlib.Path(sys.argv[1])
old, other = shared / "old", shared / "folder" / "other"
other.parent.mkdir()
old.write_bytes(b"1"); other.write_bytes(b"1")
seen = []
watch = Watch(shared, lambda path: seen.append(path), deadly=int(sys.argv[2]))
old.write_bytes(b"2")  # not old before the first step
watch.step()
(shared / "new").write_bytes(b"3")
os.replace(shared / "new", old)  # in one move
old.read_bytes()
print(len(seen), end=" ")
watch._note = lambda path: print(f"at {pathlib.Path(path).name or 'nothing'}", end=" ", flush=True)
{deed}
"""


@pytest.mark.parametrize(
    ("deed", "left"),
    [
        ("open(old, 'wb')", "at old"),
        ("old.write_bytes(b'4')", "at old"),
        ("shutil.copy(sys.executable, old)", "at old"),
        ("watch.saves(str(old))", "at old"),
        ("old.unlink()", "at nothing"),
        ("old.rename(shared / 'older')", "at nothing"),
        ("shutil.rmtree(other.parent)", "at nothing"),
        ("open(old, 'ab').close()", ""),
        ("(shared / 'newer').write_bytes(b'5')", ""),
    ],
)
def test_whoever_takes_an_old_file_away_is_seen_and_dies_there(deed, left, tmp_path):
    """One old file is emptied, removed or renamed; a new one beside it, or one that grows, is no such deed."""
    for deadly in (0, 1):
        folder = tmp_path / str(deadly)
        folder.mkdir()
        command = [sys.executable, "-c", DEEDS.replace("{deed}", deed), str(folder), str(deadly)]
        child = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
        assert child.stderr == ""
        assert child.stdout.strip() == ("0 " + (left if deadly else left and "at nothing")).strip()
        assert child.returncode == (-signal.SIGKILL if deadly and left else 0)
