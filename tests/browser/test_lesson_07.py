"""Lesson 07 in a real JupyterLab: a calculator follows the keyboard, its picture does not jump, its words fit."""

import pytest

from tests.browser.pages import heights_of_words, place_in, says, shows_whole, widget_of
from utils.views.figure import WIDTH
from utils.views.infra_restarts import HEIGHT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def calculator(browser, lab):
    with widget_of(browser, lab, "07_infrastructure.ipynb", "07-imports", "07-restarts-calculator") as shown:
        yield shown


def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(calculator):
    says(calculator, "16,384 GPUs fail every 3.09 hours")
    picture = shows_whole(calculator, WIDTH, HEIGHT)
    place, source = place_in(calculator, picture), picture.get_attribute("src")
    calculator.locator(".noUi-handle").first.focus()  # GPUs
    calculator.page.keyboard.press("ArrowLeft")
    says(calculator, "4,096 GPUs fail every 12.4 hours")
    calculator.page.wait_for_function("([img, was]) => img.src !== was", arg=[picture.element_handle(), source])
    assert place_in(calculator, picture) == pytest.approx(place)


def test_the_words_fit(calculator):
    says(calculator, "GPUs fail every")
    needed, there = heights_of_words(calculator)
    assert needed <= there + 1
