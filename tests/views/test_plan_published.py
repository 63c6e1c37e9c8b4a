"""Published runs as a scatter and as a table."""

from itertools import combinations
from pathlib import Path

import pytest

from utils.theory.scale import published_runs, score
from utils.views.figure import WIDTH
from utils.views.png import size
from utils.views.scale import (
    HEIGHT,
    PublishedTable,
    published_picture,
    published_scene,
    published_words,
    source_colours,
)

OUTSIDE = Path(__file__).parents[1] / "data" / "published_runs_outside.csv"


@pytest.fixture(scope="module")
def rows():
    return [*score(), *score(published_runs(OUTSIDE))]


def test_the_scatter_can_be_read_and_says_its_misses(readable, rows):
    for some in (rows, rows[:188], rows[:40]):
        readable(published_scene(some, "Published runs"), WIDTH, HEIGHT)
    picture = published_picture(rows)
    assert size(picture.image_bytes()) == (WIDTH, HEIGHT)
    assert "NeMo LLAMA2-7B 64k 64 GPUs CP2 (+36%)" in picture.alt and "a constant MFU" in picture.alt
    scene = published_scene(rows, "Published runs")
    colours = source_colours(rows)
    assert len(set(colours.values())) == len(colours) == 9
    parts = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours.values()]
    for one, other in combinations(parts, 2):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) > 60, "told apart"
    dots = [box for box in scene.boxes if box.width == 7]
    assert len(dots) == sum(not row.run.left_out for row in rows)
    assert sum(dot.fill == "#FFFFFF" for dot in dots) == sum(row.calibration for row in rows) == 21


def test_the_table_has_every_row_and_names_what_was_assumed_or_missed(rows):
    lines = PublishedTable(rows).lines()
    assert len(lines) == len(rows) == 312 and all(len(line) == 7 for line in lines)
    for said in ("left out: ", "calibration", "missed: ", "not stated"):
        assert any(said in line[-1] for line in lines), said
    html = PublishedTable(rows)._repr_html_()
    assert html.count("<tr>") == 313 and html.count('scope="row"') == 312
    first = next(row for row in rows if row.counts)
    assert f"{first.error:+.1%}" in repr(PublishedTable([first]))
    assert f"{len([row for row in rows if row.counts])} rows scored" in published_words(rows, "Published runs")
