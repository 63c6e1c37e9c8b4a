"""Lesson 06 in a real JupyterLab: its calculator follows the keyboard, its picture does not jump, its words fit."""

import pytest

from tests.browser.pages import heights_of_words, place_in, says, shows_whole, widget_of
from utils.views.figure import WIDTH
from utils.views.hybrid import HEIGHT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def calculator(browser, lab):
    with widget_of(browser, lab, "06_hsdp.ipynb", "06-imports", "06-calculator-show") as shown:
        yield shown


def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(calculator):
    says(calculator, "on 8 nodes of 8 (64 GPUs), shard groups of 8")
    picture = shows_whole(calculator, WIDTH, HEIGHT)
    place, source = place_in(calculator, picture), picture.get_attribute("src")
    calculator.locator(".noUi-handle").first.focus()  # nodes
    calculator.page.keyboard.press("ArrowRight")
    says(calculator, "on 16 nodes of 8 (128 GPUs)")
    calculator.page.wait_for_function("([img, was]) => img.src !== was", arg=[picture.element_handle(), source])
    assert place_in(calculator, picture) == pytest.approx(place)


def test_a_model_that_does_not_fit_says_which_group_would(calculator):
    calculator.locator("select").first.select_option(label="Llama-2-70B")
    says(calculator, "which does not fit 80 GB")
    says(calculator, "The fastest that fits: groups of")


@pytest.mark.parametrize("model", ["GPT-2", "Llama-3.1-405B"])
def test_the_words_fit(calculator, model):
    calculator.locator("select").first.select_option(label=model)
    says(calculator, model)
    needed, there = heights_of_words(calculator)
    assert needed <= there + 1
