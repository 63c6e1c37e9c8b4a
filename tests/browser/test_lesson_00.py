"""Lesson 00 in a real JupyterLab: readable before it is run, whole after Run All, its calculator at the keyboard."""

import re

import pytest

from tests.browser.pages import run_all
from utils.notebooks.files import ROOT, read_notebook

pytestmark = pytest.mark.browser

LESSON = "00_ranks_and_collectives.ipynb"
IDLE_AND_DONE = """count => {
    const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')].map(p => p.textContent);
    const status = document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status;
    return status === 'idle' && prompts.length === count && prompts.every(text => /\\[\\d+\\]/.test(text));
}"""


@pytest.fixture(scope="module")
def lesson(browser, lab):
    """The lesson, open in Lab, not run."""
    address, folder = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address.format(LESSON))
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=90_000)
    yield page, folder / LESSON
    page.close()


@pytest.fixture(scope="module")
def finished(lesson):
    """The lesson after Run All, saved."""
    page, path = lesson
    cells = [cell for cell in read_notebook(ROOT / "notebooks" / LESSON).cells if cell.cell_type == "code"]
    run_all(page, "text=[*]")
    page.wait_for_function(IDLE_AND_DONE, arg=len(cells), timeout=180_000)
    before = path.stat().st_mtime_ns
    page.keyboard.press("Control+s")
    for _ in range(100):
        if path.stat().st_mtime_ns != before:
            break
        page.wait_for_timeout(100)
    return page, read_notebook(path)


def test_pictures_have_their_words_before_anything_is_run(lesson):
    """A notebook from elsewhere is not trusted: what it shows must be allowed all the same."""
    page, _ = lesson
    for words, height in (
        ("broadcast on 4 ranks", 284),
        ("all_reduce on 4 ranks", 284),
        ("all_reduce on 4 ranks.* S = 32 MiB", 442),
        ("Calculator: all_reduce on 4 ranks", 442),
    ):
        picture = page.get_by_role("img", name=re.compile(f"^{words}")).first
        assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [840, height]


def test_nothing_tells_the_cost_before_the_guess(lesson):
    """The learner commits to a number first; pictures, tables and text above must not give it away."""
    page, _ = lesson
    above = page.evaluate(
        """() => {
            const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
            const guess = cells.findIndex(cell => cell.textContent.includes('Before you read on, commit to a number'));
            const images = cells.slice(0, guess).flatMap(cell => [...cell.querySelectorAll('img')]);
            return [cells.slice(0, guess).map(cell => cell.textContent), images.map(image => image.alt)].flat();
        }"""
    )
    assert sum("Who sends to whom" in text for text in above) == 5
    told = [text for text in above if re.search(r"\b\d(\.\d+)? S\b|\(N \u2212 1\)|Sent:|along each arrow:", text)]
    assert told == []


def test_it_runs_from_top_to_bottom(finished):
    _, notebook = finished
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    errors = [output for cell in code for output in cell.outputs if output.output_type == "error"]
    assert errors == []


def test_nothing_is_wider_than_the_page(finished):
    page, _ = finished
    too_wide = page.evaluate(
        """() => [...document.querySelectorAll('.jp-OutputArea-output')]
            .filter(area => area.scrollWidth > area.clientWidth + 1).map(area => area.textContent.slice(0, 80))"""
    )
    assert too_wide == []


def test_an_arrow_key_on_the_slider_changes_the_picture(finished):
    page, _ = finished
    calculator = page.locator(".widget-vbox").first
    picture, words = calculator.locator("img"), calculator.get_by_role("status")
    calculator.scroll_into_view_if_needed()
    assert "on 4 ranks" in words.inner_text()
    place, source = picture.bounding_box(), picture.get_attribute("src")

    calculator.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('.widget-vbox img').src !== before", arg=source)
    assert "on 5 ranks" in words.inner_text() and "1.60 S" in words.inner_text()
    page.wait_for_function("document.querySelector('.widget-vbox img').naturalWidth === 840")
    assert picture.bounding_box() == place, "the picture jumps"


def test_every_control_is_reached_with_the_tab_key(finished):
    page, _ = finished
    calculator = page.locator(".widget-vbox").first
    calculator.locator("select").focus()
    reached = []
    for _ in range(6):
        reached.append(
            page.evaluate(
                "document.activeElement.closest('.jupyter-widgets label, .widget-inline-hbox')?.textContent.slice(0, 5)"
            )
        )
        page.keyboard.press("Tab")
    assert {"Colle", "Ranks", "S (si"} <= set(filter(None, reached))


def test_space_opens_the_list_of_collectives(finished):
    """Lab takes the arrow keys for itself while a list is closed."""
    page, _ = finished
    calculator = page.locator(".widget-vbox").first
    before = calculator.locator("select").input_value()
    calculator.locator("select").focus()
    for key in ("Space", "ArrowDown", "Enter"):
        page.keyboard.press(key)
        page.wait_for_timeout(200)
    assert calculator.locator("select").input_value() != before
