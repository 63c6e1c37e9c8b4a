"""Lesson 08 in a real JupyterLab: its planner follows the keyboard, its picture does not jump, its words fit."""

import pytest

from tests.browser.pages import heights_of_words, place_in, says, shows_whole, widget_of
from utils.views.figure import WIDTH
from utils.views.planner import HEIGHT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def planner(browser, lab):
    with widget_of(browser, lab, "08_which_one_when.ipynb", "08-imports", "08-planner-show") as shown:
        yield shown


def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(planner):
    says(planner, "Take ZeRO-1")
    picture = shows_whole(planner, WIDTH, HEIGHT)
    place, source = place_in(planner, picture), picture.get_attribute("src")
    planner.locator(".noUi-handle").first.focus()  # GPUs
    planner.page.keyboard.press("ArrowRight")
    says(planner, "on 16 nodes of 8")
    planner.page.wait_for_function("([img, was]) => img.src !== was", arg=[picture.element_handle(), source])
    assert place_in(planner, picture) == pytest.approx(place)


def test_a_model_that_fits_nowhere_says_what_would(planner):
    planner.locator("select").first.select_option(label="Llama-3.1-405B")
    says(planner, "Nothing fits")


@pytest.mark.parametrize("model", ["GPT-2", "Llama-3.1-405B"])
def test_the_words_fit(planner, model):
    planner.locator("select").first.select_option(label=model)
    says(planner, model)
    needed, there = heights_of_words(planner)
    assert needed <= there + 1
