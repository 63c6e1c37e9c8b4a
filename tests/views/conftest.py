"""What the tests of pictures share."""

import gc
from itertools import combinations

import pytest
from ipywidgets import Checkbox, Dropdown, IntSlider, SelectionSlider

from utils.views.board import extent
from utils.views.palette import SMALL


def check_scene(scene, width, height):
    """No word leaves the picture, touches another word or is too small to read."""
    placed = [(word, extent(word)) for word in scene.words if word.text.strip()]
    for word, (left, top, right, bottom) in placed:
        assert word.size >= SMALL, f"{word.text!r} has {word.size} pt"
        assert left >= 0 and top >= 0 and right <= width and bottom <= height, f"{word.text!r} leaves the picture"
    for (a, box_a), (b, box_b) in combinations(placed, 2):
        apart = box_a[2] <= box_b[0] or box_b[2] <= box_a[0] or box_a[3] <= box_b[1] or box_b[3] <= box_a[1]
        assert apart, f"{a.text!r} lies over {b.text!r}"


@pytest.fixture
def readable():
    return check_scene


def controls_of(widget):
    """All controls inside, in the order in which the Tab key reaches them."""
    if isinstance(widget, Checkbox | Dropdown | IntSlider | SelectionSlider):
        return [widget]
    return [control for child in getattr(widget, "children", ()) for control in controls_of(child)]


def values_of(control):
    """What a control offers, in order."""
    if isinstance(control, Checkbox):
        return (False, True)
    if isinstance(control, IntSlider):
        return range(control.min, control.max + 1, control.step)
    return [value for _, value in control._options_full]


def count_kept(calculator, count, controls=None):
    """How many objects more there are after `count` moves: of every control in turn, if none are named.

    One figure alone is more than a thousand objects.
    """
    controls = controls or controls_of(calculator)

    def move():
        for i in range(count):
            values = values_of(controls[i % len(controls)])
            controls[i % len(controls)].value = values[(i // len(controls) + 1) % len(values)]

    move()  # fills the table of words' outlines
    gc.collect()
    before = len(gc.get_objects())
    move()
    gc.collect()
    return len(gc.get_objects()) - before


@pytest.fixture
def controls():
    return controls_of


@pytest.fixture
def offered():
    return values_of


@pytest.fixture
def objects_kept():
    return count_kept
