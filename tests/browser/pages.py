"""A lesson in a real JupyterLab, run cell by cell as far as one of its widgets."""

from contextlib import contextmanager

from utils.notebooks.files import ROOT, read_notebook


@contextmanager
def widget_of(browser, lab, lesson, cell_id):
    """The widget that a lesson's cell shows, after the cells down to it were run one by one."""
    address, _ = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address.format(lesson))
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=90_000)
    cells = [cell.id for cell in read_notebook(ROOT / "notebooks" / lesson).cells]
    page.locator(".jp-Notebook .jp-Cell").first.click()
    for _ in range(cells.index(cell_id) + 1):
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(200)
    shown = page.locator(".widget-vbox").first
    shown.get_by_role("status").wait_for(timeout=90_000)
    yield shown
    page.close()


def words(widget):
    """What the widget says."""
    return widget.get_by_role("status").inner_text()


def says(widget, text):
    """Wait until the words contain `text`."""
    widget.page.wait_for_function(
        "text => document.querySelector('.widget-vbox [role=status]').innerText.includes(text)", arg=text
    )


def place_in(widget, picture):
    """The picture's box from the widget's upper left corner: a key may scroll the page."""
    corner, box = widget.bounding_box(), picture.bounding_box()
    return {**box, "x": box["x"] - corner["x"], "y": box["y"] - corner["y"]}


def shows_whole(widget, width, height):
    """The picture, once it is there in its own size."""
    picture = widget.locator("img")
    widget.page.wait_for_function(f"document.querySelector('.widget-vbox img').naturalWidth === {width}")
    box = picture.bounding_box()
    assert (box["width"], box["height"]) == (width, height)
    return picture


def heights_of_words(widget):
    """(what the words need, what their box has), in pixels."""
    return widget.page.evaluate(
        """() => { const box = document.querySelector('.widget-vbox [role=status]').closest('.widget-html');
                   return [box.scrollHeight, box.clientHeight]; }"""
    )
