"""A lesson in a real JupyterLab, run cell by cell as far as one of its widgets."""

from contextlib import contextmanager

from utils.notebooks.files import ROOT, read_notebook


@contextmanager
def widget_of(browser, lab, lesson, *cell_ids):
    """The first widget of a lesson, after the cells named were run; with one name, after all cells down to it were."""
    address, _ = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address.format(lesson))
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=90_000)
    page.wait_for_timeout(3000)  # until pictures have pushed the cells to their places
    cells = [cell.id for cell in read_notebook(ROOT / "notebooks" / lesson).cells]
    places = [cells.index(name) for name in cell_ids]
    for number in range(places[0] + 1) if len(places) == 1 else places:
        if len(places) > 1 or number == 0:  # Shift+Enter goes on to the next cell
            page.locator(".jp-Notebook .jp-Cell").nth(number).click(position={"x": 50, "y": 12})
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(200)
    shown = page.locator(".widget-vbox").first
    shown.get_by_role("status").wait_for(timeout=90_000)
    yield shown
    page.close()


def run_all(page, begun, seconds=30):
    """Run all cells. begun: a selector of what is there once it has begun: a click while Lab settles may be lost."""
    page.wait_for_timeout(3000)
    for tries_left in (2, 1, 0):
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        found = page.locator(begun)
        for _ in range(10 * seconds):
            if found.count():
                return
            page.wait_for_timeout(100)
        assert tries_left, f"Run All Cells was clicked three times, and there is no {begun}"


def words(widget):
    """What the widget says."""
    return widget.get_by_role("status").inner_text()


def says(widget, text, timeout=30_000):
    """Wait until the words contain `text`."""
    widget.page.wait_for_function(
        "([widget, text]) => widget.querySelector('[role=status]').innerText.includes(text)",
        arg=[widget.element_handle(), text],
        timeout=timeout,
    )


def place_in(widget, picture):
    """The picture's box from the widget's upper left corner, both at one moment: a key may scroll the page."""
    return picture.evaluate(
        """(picture, widget) => {
            const [inner, outer] = [picture.getBoundingClientRect(), widget.getBoundingClientRect()];
            return {x: inner.x - outer.x, y: inner.y - outer.y, width: inner.width, height: inner.height};
        }""",
        widget.element_handle(),
    )


def shows_whole(widget, width, height):
    """The picture, once it is there in its own size."""
    picture = widget.locator("img")
    widget.page.wait_for_function("([img, width]) => img.naturalWidth === width", arg=[picture.element_handle(), width])
    box = picture.bounding_box()
    assert (box["width"], box["height"]) == (width, height)
    return picture


def heights_of_words(widget):
    """(what the words need, what their box has), in pixels."""
    return widget.get_by_role("status").evaluate(
        "it => { const box = it.closest('.widget-html'); return [box.scrollHeight, box.clientHeight]; }"
    )
