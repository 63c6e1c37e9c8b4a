"""Lesson 03 in a real JupyterLab: the ring is stepped and played, and its picture does not jump."""

import pytest

from utils.notebooks.files import ROOT, read_notebook
from utils.views.figure import WIDTH
from utils.views.ring import HEIGHT

pytestmark = pytest.mark.browser

LESSON = "03_ring_cost.ipynb"


@pytest.fixture(scope="module")
def stepper(browser, lab):
    """The player, after the cells down to its own were run one by one."""
    address, _ = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address.format(LESSON))
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=90_000)
    cells = [cell.id for cell in read_notebook(ROOT / "notebooks" / LESSON).cells]
    page.locator(".jp-Notebook .jp-Cell").first.click()
    for _ in range(cells.index("03-ring-stepper") + 1):
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(200)
    player = page.locator(".widget-vbox").first
    player.get_by_role("status").wait_for(timeout=90_000)
    yield player
    page.close()


def words(stepper):
    return stepper.get_by_role("status").inner_text()


def says(stepper, text):
    """Wait until the words begin with `text`."""
    stepper.page.wait_for_function(
        "text => document.querySelector('.widget-vbox [role=status]').innerText.startsWith(text)", arg=text
    )


def place_in(stepper, picture):
    """The picture's box from the widget's upper left corner: a click may scroll the page."""
    corner, box = stepper.bounding_box(), picture.bounding_box()
    return {**box, "x": box["x"] - corner["x"], "y": box["y"] - corner["y"]}


def test_step_and_back_move_the_picture_and_it_does_not_jump(stepper):
    assert words(stepper).startswith("Before the first of 6 steps")
    picture = stepper.locator("img")
    stepper.page.wait_for_function(f"document.querySelector('.widget-vbox img').naturalWidth === {WIDTH}")
    place = place_in(stepper, picture)
    assert (place["width"], place["height"]) == (WIDTH, HEIGHT)
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
