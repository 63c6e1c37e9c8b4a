"""Notebooks that were handed in: found once each, read whatever tool saved them, refused in one sentence."""

import json
import os

import pytest

from utils import __main__ as commands
from utils.notebooks import submission
from utils.notebooks.errors import NotebookError
from utils.notebooks.files import tags_of
from utils.notebooks.submission import read_submission, submissions


def stored(folder, *cells, **fields):
    path = folder / "03.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 0, "cells": cells, **fields}))
    return path


def code(**fields):
    return {"cell_type": "code", "source": "1", **fields}


def test_folders_are_searched_and_hidden_ones_are_not(tmp_path):
    for name in ("b/03.ipynb", "a/03.ipynb", "a/.ipynb_checkpoints/03.ipynb", "a/notes.txt", "a/._03.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "c.ipynb").mkdir()  # a folder of such a name is none
    found = submissions([tmp_path, tmp_path / "a" / "03.ipynb"])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["a/03.ipynb", "b/03.ipynb"]


def test_a_file_is_one_by_whatever_path(tmp_path):
    path = stored(tmp_path)
    (tmp_path / "again.ipynb").symlink_to(path)
    assert submissions([path, tmp_path / ".." / tmp_path.name / "03.ipynb", tmp_path]) == [path]


def test_a_folder_that_cannot_be_opened_is_named(tmp_path, monkeypatch):
    def walk(folder, onerror):
        onerror(PermissionError(13, "Permission denied", str(tmp_path)))
        return iter(())

    monkeypatch.setattr(os, "walk", walk)
    assert submissions([tmp_path]) == [tmp_path]
    with pytest.raises(NotebookError, match="is a folder that cannot be opened"):
        read_submission(tmp_path)


def test_ids_are_kept_found_in_the_metadata_or_made(tmp_path):
    cells = (code(id="a"), code(id="a"), code(metadata={"id": "b"}), code(), code(id="no id!"), code(id=7))
    ids = [cell.id for cell in read_submission(stored(tmp_path, *cells)).cells]
    assert ids[0] == "a" and ids[2] == "b" and len(set(ids)) == len(cells) and "no id!" not in ids


def test_what_tools_write_besides_is_passed_over(tmp_path):
    tagged = code(metadata={"tags": ["answer:03.bandwidths", 5], "more": 1}, outputs="none", execution_count="x")
    path = stored(tmp_path, tagged, code(source=["a\n", "b"], metadata=None), code(source="x = '\ud800'"), metadata=3)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    first, second, third = read_submission(path).cells
    assert tags_of(first) == ["answer:03.bandwidths"] and second.source == "a\nb" and third.source == "x = '?'"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty, 0 bytes"),
        (b"\xff\xfe\x00", "is no text in UTF-8"),
        (b"{", "cannot be read as a notebook: Expecting"),
        (b"[" * 100_000, "cannot be read as a notebook"),
        (b'{"nbformat": ' + b"9" * 5000 + b"}", "cannot be read as a notebook"),
        (b'{"nbformat": 3, "worksheets": []}', "is no notebook of format 4"),
        (b'{"nbformat": 4, "cells": [3]}', "its cell 0 has no kind or no source"),
        (b'{"nbformat": 4, "cells": [{"cell_type": ["code"], "source": ""}]}', "its cell 0 has no kind"),
        (b" " * 1001, "MB, and 100 are read"),
    ],
    ids=lambda given: given[:12].decode("latin-1") if isinstance(given, bytes) else "",
)
def test_what_is_none_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys, content, said):
    monkeypatch.setattr(submission, "LARGEST", 1000 if content[:1] == b" " else submission.LARGEST)
    path = tmp_path / "03.ipynb"
    path.write_bytes(content)
    assert commands.main(["grade", str(path)]) == 2
    first, last = capsys.readouterr().err.splitlines()
    assert str(path) in first and said in first and "there is no lab to judge" in last


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_links_pipes_and_folders_are_no_notebooks(tmp_path, capsys):
    (tmp_path / "nowhere.ipynb").symlink_to("gone")
    (tmp_path / "round.ipynb").symlink_to("round.ipynb")
    os.mkfifo(tmp_path / "pipe.ipynb")  # who reads it waits for ever
    (tmp_path / "empty").mkdir()
    assert commands.main(["grade", str(tmp_path), str(tmp_path / "empty")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 5 and sum("is a link that leads nowhere" in line for line in said) == 2
    assert any("pipe.ipynb is neither a file nor a folder" in line for line in said)
    assert any("empty holds no notebook" in line for line in said)
