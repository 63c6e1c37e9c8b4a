"""What a solution has stored as the output of its cells, to compare with what a job printed."""

import json
import re


def summary(printed, where):
    """(cells, checks passed, checks) of the last line that `utils run` prints; zeros if it is not there."""
    found = re.search(rf": (\d+) cells run on {where}; (\d+) of (\d+) checks passed$", printed, re.MULTILINE)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)


def missing_lines(notebook, printed):
    """The stored lines that do not stand in `printed`, in their order. Pictures, widgets, and cells whose output is not
    compared in Jupyter either, are left out."""
    lines = iter(printed.splitlines())
    return [line for line in stored_lines(notebook) if all(each != line for each in lines)][:5]


def stored_lines(notebook):
    """Each line of the checked cells' texts."""
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "code" or "nbval-ignore-output" in cell["metadata"].get("tags", []):
            continue
        for output in cell["outputs"]:
            data = output.get("data", {})
            if output["output_type"] == "stream" and output["name"] == "stdout":
                yield from "".join(output["text"]).splitlines()
            elif "text/plain" in data and not any(kind.startswith(("image/", "application/")) for kind in data):
                yield from "".join(data["text/plain"]).splitlines()
