"""What the tests of pictures share."""

from itertools import combinations

import pytest

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
