"""Lesson 04 in a real JupyterLab: its calculator follows the keyboard, and its picture does not jump."""

import pytest

from tests.browser.pages import heights_of_words, place_in, says, shows_whole, widget_of, words
from utils.views.figure import WIDTH
from utils.views.zero import HEIGHT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def calculator(browser, lab):
    with widget_of(browser, lab, "04_zero.ipynb", "04-calculator-show") as shown:
        yield shown


def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(calculator):
    says(calculator, "64 GPUs, 1 micro-batch")
    picture = shows_whole(calculator, WIDTH, HEIGHT)
    place, source = place_in(calculator, picture), picture.get_attribute("src")
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
    box = heights_of_words(calculator)
    assert box[0] <= box[1] + 1
    assert words(calculator)
