"""Lesson 02 in a real JupyterLab: its calculator follows the keyboard, and its picture does not jump."""

import pytest

from tests.browser.pages import heights_of_words, place_in, says, shows_whole, widget_of, words
from utils.views.figure import WIDTH
from utils.views.overlap import HEIGHT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def calculator(browser, lab):
    with widget_of(browser, lab, "02_buckets_and_overlap.ipynb", "02-calculator-show") as shown:
        yield shown


def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(calculator):
    says(calculator, "64 ranks")
    picture = shows_whole(calculator, WIDTH, HEIGHT)
    place, before, source = place_in(calculator, picture), words(calculator), picture.get_attribute("src")
    calculator.locator(".noUi-handle").first.focus()  # the cap
    calculator.page.keyboard.press("ArrowRight")
    calculator.page.wait_for_function("was => document.querySelector('.widget-vbox img').src !== was", arg=source)
    assert words(calculator) != before
    assert place_in(calculator, picture) == pytest.approx(place)


def test_a_box_is_ticked_with_the_space_bar(calculator):
    before = words(calculator)
    box = calculator.locator("input[type=checkbox]")
    box.focus()
    calculator.page.keyboard.press("Space")
    calculator.page.wait_for_function(
        "was => document.querySelector('.widget-vbox [role=status]').innerText !== was", arg=before
    )
    assert box.is_checked()


def test_the_words_fit_into_their_box_with_the_longest_names(calculator):
    calculator.locator("select").first.select_option(label="Llama-3.1-405B")
    calculator.locator("select").last.select_option(label="InfiniBand NDR")
    says(calculator, "Llama-3.1-405B")
    needed, there = heights_of_words(calculator)
    assert needed <= there + 1
