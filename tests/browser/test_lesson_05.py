"""Lesson 05 in a real JupyterLab: its stepper, its calculator and a dry run, at the keyboard; no error anywhere."""

import pytest

from tests.browser.pages import heights_of_words, place_in, says, shows_whole, widget_of, words
from utils.views import dry_run, fsdp_step, lifecycle
from utils.views.figure import WIDTH

pytestmark = pytest.mark.browser

LESSON = "05_fsdp.ipynb"
CELLS = ("05-imports", "05-life-stepper", "05-calculator-show", "05-dry-run-show")


@pytest.fixture(scope="module")
def widgets(browser, lab):
    """The stepper, the calculator and the dry run, of which each needs the first cell alone."""
    with widget_of(browser, lab, LESSON, *CELLS) as shown:
        yield shown.page.locator(".jp-OutputArea-output > .widget-vbox")


@pytest.fixture(scope="module")
def stepper(widgets):
    return widgets.nth(0)


@pytest.fixture(scope="module")
def calculator(widgets):
    return widgets.nth(1)


@pytest.fixture(scope="module")
def tracing(widgets):
    return widgets.nth(2)


def test_the_stepper_steps_and_its_picture_does_not_jump(stepper):
    says(stepper, "Unit 2 is whole again and computes its backward")
    picture = shows_whole(stepper, WIDTH, lifecycle.HEIGHT)
    place = place_in(stepper, picture)
    stepper.get_by_role("button", name="step ▶").click()
    says(stepper, "Unit 1 is whole again")
    stepper.get_by_role("button", name="◀ back").press("Enter")
    says(stepper, "Unit 2 is whole again")
    assert place_in(stepper, picture) == pytest.approx(place)


def test_an_arrow_key_changes_words_and_picture_and_nothing_jumps(calculator):
    says(calculator, "92.3 GB")
    picture = shows_whole(calculator, WIDTH, fsdp_step.HEIGHT)
    place, source = place_in(calculator, picture), picture.get_attribute("src")
    calculator.locator(".noUi-handle").first.focus()  # GPUs
    calculator.page.keyboard.press("ArrowRight")
    says(calculator, "on 128 GPUs")
    calculator.page.wait_for_function("([img, was]) => img.src !== was", arg=[picture.element_handle(), source])
    assert place_in(calculator, picture) == pytest.approx(place)


def test_a_box_is_ticked_with_the_space_bar_and_the_words_fit(calculator):
    calculator.locator("input[type=checkbox]").focus()
    calculator.page.keyboard.press("Space")
    says(calculator, "which fits into 80 GB")
    calculator.locator("select").first.select_option(label="Llama-3.1-405B")
    says(calculator, "Llama-3.1-405B")
    needed, there = heights_of_words(calculator)
    assert needed <= there + 1


def test_a_dry_run_is_predicted_traced_and_the_notebook_goes_on(tracing, stepper):
    tracing.locator("select").first.select_option(label="GPT-2")
    says(tracing, "Predicted: at most")
    tracing.get_by_role("button", name="Trace this step").click()
    tracing.get_by_role("button", name="Stop").wait_for()
    stepper.get_by_role("button", name="step ▶").click()
    says(stepper, "Unit 1 is whole again")  # meanwhile
    says(tracing, "GPT-2 under fsdp on 64 ranks", timeout=90_000)
    assert "traced in" in tracing.inner_text() and "It fits into 80 GB" in words(tracing)
    shows_whole(tracing, WIDTH, dry_run.HEIGHT)
    needed, there = heights_of_words(tracing)
    assert needed <= there + 1


def test_a_dry_run_is_stopped(tracing):
    tracing.locator("select").first.select_option(label="Llama-2-7B")
    says(tracing, "Predicted: at most")
    tracing.get_by_role("button", name="Trace this step").click()
    tracing.get_by_role("button", name="Stop").click()
    tracing.get_by_text("stopped", exact=True).wait_for(timeout=60_000)
    tracing.get_by_role("button", name="Trace this step").wait_for()


def test_a_choice_that_does_not_go_is_said_in_one_sentence(tracing):
    tracing.locator("select").last.select_option(label="hsdp")
    says(tracing, "hsdp on 64 GPUs")
    tracing.locator(".noUi-handle").first.focus()  # GPUs, down to the least
    tracing.page.keyboard.press("Home")
    says(tracing, "shard_size is 8")
    assert words(tracing).count(".") <= 1


def test_no_cell_failed(widgets):
    assert widgets.page.locator(".jp-RenderedText[data-mime-type*='error']").count() == 0
