"""Labs are what solutions give, and never give a solution away."""

import pytest

from tests.notebooks.planted import code, notebook_of, prose
from utils.notebooks.build_labs import build_labs, expected_labs, lab_from
from utils.notebooks.errors import NotebookError
from utils.notebooks.files import read_notebook, text_of, write_notebook
from utils.notebooks.markers import STUB

AVERAGE = '''def average(values):
    """The mean of the values."""
    ### BEGIN SOLUTION
    total = sum(values)
    return total / len(values)
    ### END SOLUTION
'''


def lab_of(*cells):
    return lab_from(notebook_of(*cells), "solutions/90_x.ipynb")


@pytest.fixture
def root(tmp_path):
    """A repository with one solved notebook that has been run."""
    solved = code(AVERAGE, "answer:90.average", id="average")
    solved.execution_count = 1
    solved.metadata["execution"] = {"iopub.status.busy": "2030-01-01T00:00:00Z"}
    solution = notebook_of(prose("# A solution for everything", id="title"), solved)
    solution.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    write_notebook(solution, tmp_path / "solutions" / "90_x.ipynb")
    return tmp_path


def test_region_becomes_one_line_and_signature_and_docstring_stay(root):
    build_labs(root)
    lab = read_notebook(root / "labs" / "90_x.ipynb")
    assert lab.cells[1].source == f'def average(values):\n    """The mean of the values."""\n    {STUB}'


def test_ids_and_tags_stay_and_all_traces_of_a_run_go(root):
    build_labs(root)
    lab = read_notebook(root / "labs" / "90_x.ipynb")
    assert [cell.id for cell in lab.cells] == ["title", "average"]
    assert lab.cells[1].metadata == {"tags": ["answer:90.average"]}
    assert lab.cells[1].outputs == []
    assert lab.cells[1].execution_count is None
    assert "widgets" not in lab.metadata


def test_same_solution_gives_the_same_bytes(root):
    assert expected_labs(root) == expected_labs(root)
    assert build_labs(root) == [root / "labs" / "90_x.ipynb"]
    assert build_labs(root) == []


def test_stub_raises_and_names_what_to_do():
    with pytest.raises(NotImplementedError, match="your answer here"):
        exec(STUB)


def test_cell_that_is_all_solution_becomes_the_stub():
    lab = lab_of(code("### BEGIN SOLUTION\nx = 1\n### END SOLUTION"))
    assert lab.cells[0].source == STUB


def test_two_regions_in_a_class_are_replaced_each_at_its_own_indentation():
    source = (
        "class Both:\n    def a(self):\n        ### BEGIN SOLUTION\n        return 1\n        ### END SOLUTION\n"
        "    def b(self):\n        if True:\n            ### BEGIN SOLUTION\n            return 2\n"
        "            ### END SOLUTION\n        return 3"
    )
    assert lab_of(code(source)).cells[0].source == (
        f"class Both:\n    def a(self):\n        {STUB}\n"
        f"    def b(self):\n        if True:\n            {STUB}\n        return 3"
    )


def test_cells_of_the_solution_alone_are_dropped():
    lab = lab_of(code("secret = 1", "solution-only"), code("open = 1"))
    assert [cell.source for cell in lab.cells] == ["open = 1"]


@pytest.mark.parametrize(
    "cell",
    [
        prose("The solution begins to show; at the end, solutions differ."),
        code("# the best solution so far\nsolution = best_solution()"),
        code("x = 1  # in the end, solution quality counts"),
    ],
)
def test_prose_about_solutions_is_kept(cell):
    assert lab_of(cell).cells[0].source == cell.source


MALFORMED = {
    "BEGIN without END": (code("### BEGIN SOLUTION\nx = 1"), "line 1 opens a region that no `### END SOLUTION` closes"),
    "END without BEGIN": (code("x = 1\n### END SOLUTION"), "line 2 closes a region that no"),
    "nested": (code("### BEGIN SOLUTION\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION"), "line 2 opens a second region"),
    "in prose": (prose("### BEGIN SOLUTION\nlook\n### END SOLUTION"), "stands in a markdown cell"),
    "END in prose": (prose("### END SOLUTION"), "stands in a markdown cell"),
    "two hashes": (code("## BEGIN SOLUTION\nx = 1\n## END SOLUTION"), "line 1 reads `## BEGIN SOLUTION`"),
    "small letters": (code("### begin solution\nx = 1\n### end solution"), "line 1 reads `### begin solution`"),
    "misspelt": (code("### BEGIN SOLUTOIN\nx = 1\n### END SOLUTION"), "line 3 closes a region that no"),
    "both misspelt": (code("### BEGN SOLUTION\nx = 1\n### EDN SOLUTION"), "line 1 reads `### BEGN SOLUTION`"),
    "words after": (code("### BEGIN SOLUTION here\nx = 1\n### END SOLUTION"), "line 1 reads"),
    "empty": (code("def f():\n    ### BEGIN SOLUTION\n    ### END SOLUTION"), "is empty"),
    "wrong indentation": (
        code("def f():\n### BEGIN SOLUTION\n    return 1\n### END SOLUTION"),
        "without its solution the cell is no valid Python",
    ),
    "answer without region": (code("def f():\n    return 1", "answer:90.f"), "tagged as an answer and has no"),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_markers_are_refused_and_nothing_is_written(root, fault):
    cell, words = MALFORMED[fault]
    cell.id = "culprit"
    write_notebook(notebook_of(cell), root / "solutions" / "91_y.ipynb")
    with pytest.raises(NotebookError) as refusal:
        build_labs(root)
    assert "solutions/91_y.ipynb, cell culprit" in str(refusal.value)
    assert words in str(refusal.value)
    assert not (root / "labs").exists()


LEAKS = {
    "in a hint": prose("One way:\n```python\ntotal = sum(values)\nreturn total / len(values)\n```"),
    "in a docstring": code(
        'def other(values):\n    """Do this:\n\n    total = sum(values)\n    return total / len(values)\n    """'
    ),
    "in another cell": code(
        "total = sum(values)\n\ndef f():\n    pass\n\ntotal = sum(values)\nreturn total / len(values)"
    ),
}


SHARE = """def share(x):
    ### BEGIN SOLUTION
    total = x.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size(group=None)
    ### END SOLUTION
"""
WRITTEN = {
    "with comments in the lines": "```\ntotal = x.clone()  # a copy\ndist.all_reduce(total)  # the sum\n```",
    "as comments": "# total = x.clone()\n# dist.all_reduce(total)",
    "as comments with comments": "# total = x.clone()  # a copy\n# dist.all_reduce(total)  # the sum",
    "with bullets": "- total = x.clone()\n- dist.all_reduce(total)",
    "with bullets and backticks": "1. `total = x.clone()`\n2. `dist.all_reduce(total)`",
    "spaced otherwise": "total=x.clone()\ndist.all_reduce( total )",
    "in a sentence": "Write `total = x.clone()`, then `dist.all_reduce(total)`, and you are there.",
    "in one line": "total = x.clone(); dist.all_reduce(total)",
    "comments between": "total = x.clone()\n# and now\ndist.all_reduce(total)",
    "in HTML": "<pre>total = x.clone()<br>dist.all_reduce(total)</pre>",
    "the long line alone": "At the end `return total / dist.get_world_size(group=None)`.",
}


@pytest.mark.parametrize("how", WRITTEN)
def test_solution_is_seen_however_it_is_written(how):
    for cell in (
        prose(WRITTEN[how], id="leak"),
        code(WRITTEN[how], id="leak"),
        code(f'"""{WRITTEN[how]}"""', id="leak"),
    ):
        with pytest.raises(NotebookError, match=r"can be read in the lab, in cell leak"):
            lab_of(code(SHARE), cell)


def test_solution_as_comments_below_its_own_region_is_seen():
    with pytest.raises(NotebookError, match="can be read in the lab"):
        lab_of(code(SHARE + "# total = x.clone()\n# dist.all_reduce(total)\n"))


@pytest.mark.parametrize(
    "hint",
    [
        "`dist.all_reduce(total)` leaves the sum in `total`; `x.clone()` is a copy.",
        "Divide by `dist.get_world_size()`.",
        "```\ntotal = x.clone()\nprint(total)\n```",
    ],
)
def test_hint_may_quote_short_expressions(hint):
    lab_of(code(SHARE), prose(hint))


@pytest.mark.parametrize(
    "tag", ["solution_only", "Solution-only", "answer-99.f", "answer:f", "answer:90", "nbval-skip"]
)
def test_unknown_tag_is_refused(tag):
    with pytest.raises(NotebookError, match=rf"the tag `{tag}` has no meaning here"):
        lab_of(code("x = 1", tag))


def test_attachments_are_refused():
    cell = prose("![](attachment:a.png)")
    cell.attachments = {"a.png": {"image/png": "aGVsbG8="}}
    with pytest.raises(NotebookError, match="the cell has attachments"):
        lab_of(cell)


@pytest.mark.parametrize("where", LEAKS)
def test_solution_text_elsewhere_in_the_lab_is_refused(where):
    LEAKS[where].id = "leak"
    with pytest.raises(NotebookError, match=r"its solution .* can be read in the lab, in cell leak"):
        lab_of(code(AVERAGE), LEAKS[where])


def test_solution_of_one_line_is_guarded_inside_a_sentence_too():
    solution = code("def f(x):\n    ### BEGIN SOLUTION\n    return x.mean(dim=0).sum()\n    ### END SOLUTION")
    with pytest.raises(NotebookError, match="can be read in the lab"):
        lab_of(solution, prose("Write `return x.mean(dim=0).sum()`."))


def test_a_line_in_common_with_given_code_is_no_leak():
    lab_of(code(AVERAGE), code("total = sum(values)\nprint(total)"))


def test_lab_in_which_somebody_worked_is_not_overwritten(root):
    (path,) = build_labs(root)
    lab = read_notebook(path)
    lab.cells[1].source = lab.cells[1].source.replace(STUB, "return 0")
    write_notebook(lab, path)
    worked_in = path.read_text()
    with pytest.raises(NotebookError, match="has been edited since it was built; keep a copy"):
        build_labs(root)
    assert path.read_text() == worked_in
    assert build_labs(root, force=True) == [path]


def test_lab_that_was_only_run_or_is_old_is_overwritten(root):
    (path,) = build_labs(root)
    lab = read_notebook(path)
    lab.cells[1].execution_count = 7
    write_notebook(lab, path)
    assert build_labs(root) == [path]
    solution = read_notebook(root / "solutions" / "90_x.ipynb")
    solution.cells[0].source = "# Another title"
    write_notebook(solution, root / "solutions" / "90_x.ipynb")
    assert build_labs(root) == [path]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("no json", "cannot be read as a notebook"),
        ("[]", "is not a notebook of format 4"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": ""}]}', "every cell needs an id of its own"),
        ('{"nbformat": 4, "cells": [{"id": "a"}, {"id": "a"}]}', "every cell needs an id of its own"),
        ('{"nbformat": 4, "cells": 5}', "`cells` is no list of cells"),
        ('{"nbformat": 4, "cells": null}', "`cells` is no list of cells"),
        ('{"nbformat": 4, "cells": ["a"]}', "`cells` is no list of cells"),
        ('{"nbformat": 4, "cells": [{"id": ["a"]}]}', "a cell's id is no text"),
        ('{"nbformat": 4, "nbformat_minor": 5, "cells": []}', "'metadata' is a required property"),
        ('{"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": []}', "is not a notebook of format 4"),
    ],
)
def test_file_that_is_no_notebook_is_refused_in_one_sentence(tmp_path, content, words):
    (tmp_path / "x.ipynb").write_text(content)
    with pytest.raises(NotebookError, match=words) as refusal:
        read_notebook(tmp_path / "x.ipynb")
    assert "\n" not in str(refusal.value)


def test_text_of_a_notebook_survives_reading(root):
    path = root / "solutions" / "90_x.ipynb"
    assert text_of(read_notebook(path)) == path.read_text()
