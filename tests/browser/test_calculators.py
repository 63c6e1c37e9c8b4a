"""The notebook of the calculators in a real JupyterLab: whole after Run All, and each calculator at the keyboard."""

import pytest

from tests.browser.pages import run_all
from tests.browser.test_lesson_00 import IDLE_AND_DONE
from utils.notebooks.files import ROOT, read_notebook
from utils.views import fit, infra_feed, infra_restarts, infra_way, moves, peers, planner, planner_units
from utils.views.figure import WIDTH

pytestmark = pytest.mark.browser

NOTEBOOK = "calculators.ipynb"
CALCULATORS = {
    fit: ("Model", "Recipe", "GPUs", "Shard group", "GPU memory", "with activations", "Tokens", "Sequences"),
    moves: ("Model", "Precision", "Rules", "Ranks", "Nodes", "Shard group", "Micro-batches", "FSDP keeps its root"),
    peers: ("Model", "GPUs", "ZeRO stage", "Tokens", "Sequences", "this suite counts", "Why does", "differ from"),
    planner: ("Model", "GPUs", "GPUs per node", "GPU", "Network", "Tokens", "Sequences per GPU"),
    planner_units: ("Model", "GPUs", "Tensor", "Pipeline", "Context", "GPU", "Network", "Tokens", "Sequences per GPU"),
    infra_way: ("Bucket", "Network", "Slot", "Host copy", "In", "Nodes", "Oversubscription", "Placed"),
    infra_restarts: ("GPUs", "Checkpoint every", "Step, s", "Hours per failure", "Stall, s", "Restart, s"),
    infra_feed: ("Train", "GPUs", "Type", "Share of the peak", "Samples per GPU", "Store, GB/s"),
}
EACH = pytest.mark.parametrize(("place", "view"), list(enumerate(CALCULATORS)), ids=lambda v: getattr(v, "__name__", v))


@pytest.fixture(scope="module")
def finished(browser, lab):
    """The notebook after Run All."""
    address, _ = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address.format(NOTEBOOK))
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=90_000)
    cells = [cell for cell in read_notebook(ROOT / "notebooks" / NOTEBOOK).cells if cell.cell_type == "code"]
    run_all(page, ".widget-vbox")
    page.wait_for_function(IDLE_AND_DONE, arg=len(cells), timeout=240_000)
    yield page
    page.close()


def test_it_runs_from_top_to_bottom_and_nothing_is_wider_than_the_page(finished):
    assert finished.locator(".jp-RenderedText[data-mime-type*='error']").count() == 0
    too_wide = finished.evaluate(
        """() => [...document.querySelectorAll('.jp-OutputArea-output')]
            .filter(area => area.scrollWidth > area.clientWidth + 1).map(area => area.textContent.slice(0, 80))"""
    )
    assert too_wide == []


@EACH
def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(finished, place, view):
    calculator = finished.locator(".jp-OutputArea-output > .widget-vbox").nth(place)
    picture, words = calculator.locator("img"), calculator.get_by_role("status")
    calculator.scroll_into_view_if_needed()
    before, source, said = picture.bounding_box(), picture.get_attribute("src"), words.inner_text()
    assert (before["width"], before["height"]) == (WIDTH, view.HEIGHT)
    calculator.locator(".noUi-handle").first.focus()
    finished.keyboard.press("ArrowRight")
    finished.wait_for_function(
        "([image, before]) => image.src !== before && image.naturalWidth", arg=[picture.element_handle(), source]
    )
    assert words.inner_text() != said
    assert picture.bounding_box() == before, "the picture jumps"
    hidden = words.evaluate(
        "it => it.getBoundingClientRect().bottom - it.closest('.widget-html').getBoundingClientRect().bottom"
    )
    assert hidden <= 1, "the words are longer than their place"


@EACH
def test_every_control_is_reached_with_the_tab_key(finished, place, view):
    calculator = finished.locator(".jp-OutputArea-output > .widget-vbox").nth(place)
    calculator.locator("select, .noUi-handle").first.focus()
    reached = []
    for _ in range(16):
        reached.append(
            finished.evaluate(
                "document.activeElement.closest('.widget-inline-hbox, .widget-checkbox')?.textContent ?? ''"
            )
        )
        finished.keyboard.press("Tab")
    for label in CALCULATORS[view]:
        assert any(label in text for text in reached), f"{label} in {reached}"
