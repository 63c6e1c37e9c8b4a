"""Lesson 04 in a real JupyterLab: its calculator follows the keyboard, and its picture does not jump."""

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.views.figure import WIDTH
from utils.views.zero import HEIGHT

pytestmark = pytest.mark.browser

LESSON = "04_zero.ipynb"


@pytest.fixture(scope="module")
def calculator(browser, lab):
    """The calculator, after the cells down to its own were run one by one."""
    address, _ = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address.format(LESSON))
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=90_000)
    cells = [cell.id for cell in read_notebook(ROOT / "notebooks" / LESSON).cells]
    page.locator(".jp-Notebook .jp-Cell").first.click()
    for _ in range(cells.index("04-calculator-show") + 1):
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(200)
    shown = page.locator(".widget-vbox").first
    shown.get_by_role("status").wait_for(timeout=90_000)
    yield shown
    page.close()


def words(calculator):
    return calculator.get_by_role("status").inner_text()


def says(calculator, text):
    """Wait until the words contain `text`."""
    calculator.page.wait_for_function(
        "text => document.querySelector('.widget-vbox [role=status]').innerText.includes(text)", arg=text
    )


def place_in(calculator, picture):
    """The picture's box from the widget's upper left corner: a key may scroll the page."""
    corner, box = calculator.bounding_box(), picture.bounding_box()
    return {**box, "x": box["x"] - corner["x"], "y": box["y"] - corner["y"]}


def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(calculator):
    says(calculator, "64 GPUs, 1 micro-batch")
    picture = calculator.locator("img")
    calculator.page.wait_for_function(f"document.querySelector('.widget-vbox img').naturalWidth === {WIDTH}")
    place, source = place_in(calculator, picture), picture.get_attribute("src")
    assert (place["width"], place["height"]) == (WIDTH, HEIGHT)
    calculator.locator(".noUi-handle").first.focus()  # GPUs
    calculator.page.keyboard.press("ArrowLeft")
    says(calculator, "32 GPUs, 1 micro-batch")
    calculator.page.wait_for_function("was => document.querySelector('.widget-vbox img').src !== was", arg=source)
    assert place_in(calculator, picture) == pytest.approx(place)


def test_a_stage_is_chosen_from_the_list(calculator):
    calculator.locator("select").last.select_option(label="3: and weights")
    says(calculator, "1.5 times what stage 0 sends")


def test_every_control_is_reached_with_the_tab_key(calculator):
    calculator.locator("select").first.focus()
    reached = []
    for _ in range(12):
        reached.append(
            calculator.page.evaluate("document.activeElement.closest('.widget-inline-hbox')?.textContent ?? ''")
        )
        calculator.page.keyboard.press("Tab")
    for label in ("Model", "Recipe", "Stage", "GPUs", "Micro-batches", "GPU memory"):
        assert any(label in text for text in reached), f"{label} in {reached}"


def test_the_words_fit_into_their_box(calculator):
    """At a crowded setting nothing of the sentence is cut off."""
    calculator.locator("select").first.select_option(label="Llama-3.1-405B")
    says(calculator, "Llama-3.1-405B")
    box = calculator.page.evaluate(
        """() => { const box = document.querySelector('.widget-vbox [role=status]').closest('.widget-html');
                   return [box.scrollHeight, box.clientHeight]; }"""
    )
    assert box[0] <= box[1] + 1
    assert words(calculator)
