"""Lesson 01 in a real JupyterLab: whole after Run All, nothing too wide, its calculator at the keyboard."""

import pytest

from tests.browser.pages import run_all
from tests.browser.test_lesson_00 import IDLE_AND_DONE
from utils.notebooks.files import ROOT, read_notebook
from utils.views.figure import WIDTH
from utils.views.memory import HEIGHT

pytestmark = pytest.mark.browser

LESSON = "01_plain_data_parallel.ipynb"


@pytest.fixture(scope="module")
def finished(browser, lab):
    """The lesson after Run All."""
    address, _ = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address.format(LESSON))
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=90_000)
    cells = [cell for cell in read_notebook(ROOT / "notebooks" / LESSON).cells if cell.cell_type == "code"]
    run_all(page, "text=[*]")
    page.wait_for_function(IDLE_AND_DONE, arg=len(cells), timeout=240_000)
    yield page
    page.close()


def test_it_runs_from_top_to_bottom(finished):
    assert finished.locator(".jp-RenderedText[data-mime-type*='error']").count() == 0
    assert finished.locator(".jp-OutputArea-output img").count() >= 4
    pictures = finished.locator(".jp-OutputArea-output img[alt]").all()
    assert all(len(picture.get_attribute("alt")) > 80 for picture in pictures)


def test_nothing_is_wider_than_the_page(finished):
    too_wide = finished.evaluate(
        """() => [...document.querySelectorAll('.jp-OutputArea-output')]
            .filter(area => area.scrollWidth > area.clientWidth + 1).map(area => area.textContent.slice(0, 80))"""
    )
    assert too_wide == []


def test_an_arrow_key_on_a_slider_changes_words_and_picture_and_nothing_jumps(finished):
    calculator = finished.locator(".widget-vbox").first
    picture, words = calculator.locator("img"), calculator.get_by_role("status")
    calculator.scroll_into_view_if_needed()
    assert "Llama-2-7B" in words.inner_text() and "does not fit into 80 GB" in words.inner_text()
    place, source = picture.bounding_box(), picture.get_attribute("src")
    assert (place["width"], place["height"]) == (WIDTH, HEIGHT)

    calculator.locator(".noUi-handle").first.focus()  # parameters: leaves the preset
    finished.keyboard.press("ArrowLeft")
    finished.wait_for_function("before => document.querySelector('.widget-vbox img').src !== before", arg=source)
    assert "Llama-2-7B" not in words.inner_text()
    finished.wait_for_function(f"document.querySelector('.widget-vbox img').naturalWidth === {WIDTH}")
    assert picture.bounding_box() == place, "the picture jumps"


def test_every_control_is_reached_with_the_tab_key(finished):
    calculator = finished.locator(".widget-vbox").first
    calculator.locator("select").first.focus()
    reached = []
    for _ in range(14):
        reached.append(
            finished.evaluate(
                "document.activeElement.closest('.widget-inline-hbox, .widget-checkbox')?.textContent ?? ''"
            )
        )
        finished.keyboard.press("Tab")
    for label in ("Model", "Parameters", "Recipe", "DDP keeps", "GPU memory", "Kept free", "GPUs"):
        assert any(label in text for text in reached), f"{label} in {reached}"
