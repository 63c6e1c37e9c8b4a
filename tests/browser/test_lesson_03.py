"""Lesson 03 in a real JupyterLab: the ring is stepped and played, and its picture does not jump."""

import pytest

from tests.browser.pages import place_in, says, shows_whole, widget_of, words
from utils.views.figure import WIDTH
from utils.views.ring import HEIGHT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def stepper(browser, lab):
    with widget_of(browser, lab, "03_ring_cost.ipynb", "03-ring-stepper") as shown:
        yield shown


def test_step_and_back_move_the_picture_and_it_does_not_jump(stepper):
    assert words(stepper).startswith("Before the first of 6 steps")
    picture = shows_whole(stepper, WIDTH, HEIGHT)
    place = place_in(stepper, picture)
    stepper.get_by_role("button", name="step ▶").click()
    says(stepper, "Step 1 of 6: reduce-scatter")
    stepper.get_by_role("button", name="step ▶").press("Enter")
    says(stepper, "Step 2 of 6")
    stepper.get_by_role("button", name="◀ back").click()
    says(stepper, "Step 1 of 6")
    assert place_in(stepper, picture) == pytest.approx(place)


def test_it_plays_and_pauses(stepper):
    play = stepper.locator(".jupyter-widgets.widget-play button").first
    play.click()
    says(stepper, "Step 3 of 6")
    play.click()
    paused = words(stepper)
    stepper.page.wait_for_timeout(2500)
    assert words(stepper)[:6] in (paused[:6], "Step 4")
    stopped = words(stepper)
    stepper.page.wait_for_timeout(1500)
    assert words(stepper) == stopped
