"""Words as outlines: drawn several at once, their shapes computed once.

matplotlib lays out and rasterises every text anew at every draw, at 0.6 ms each (measured, matplotlib 3.11); a picture
with a hundred labels would be slow to follow a slider. Here a word's outline is looked up, moved, and drawn with all
the others as one path.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from utils.views.figure import DOTS_PER_INCH

_PIXELS_PER_POINT = DOTS_PER_INCH / 72
_CAPITAL = 0.729  # height of a capital in DejaVu Sans, matplotlib's own font, as a share of the size


@lru_cache(maxsize=4096)
def outline(text: str, size: float, bold: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """(vertices, path codes, width) of `text` in pixels, y downwards, its baseline beginning at (0, 0).

    vertices: float array of shape (points, 2); path codes: integer array of shape (points,).
    """
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    path = TextPath((0, 0), text, size=size * _PIXELS_PER_POINT, prop=font)
    vertices = path.vertices * (1, -1)
    width = float(vertices[:, 0].max()) if len(vertices) else 0.0
    return vertices, path.codes, width


def placed(
    text: str, x: float, y: float, size: float, bold: bool, align: str, rise: str, upright: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(vertices, codes) of `text` at (x, y) in pixels.

    align: "left", "center" or "right" of x; rise: "center" on y or "bottom", standing on y. Turned by 90 degrees if
    `upright`: then the text is read upwards, its middle line at x, and it is centred on or stands on y.
    """
    vertices, codes, width = outline(text, size, bold)
    height = _CAPITAL * size * _PIXELS_PER_POINT
    if upright:
        turned = np.column_stack((vertices[:, 1], -vertices[:, 0]))
        return turned + np.array((x + height / 2, y if rise == "bottom" else y + width / 2)), codes
    left = {"left": x, "center": x - width / 2, "right": x - width}[align]
    return vertices + np.array((left, y if rise == "bottom" else y + height / 2)), codes


def joined(pieces: list[tuple[np.ndarray, np.ndarray]]) -> Path:
    """All pieces as one path; an empty one if there are none."""
    if not pieces:
        return Path(np.empty((0, 2)))
    return Path(np.concatenate([vertices for vertices, _ in pieces]), np.concatenate([codes for _, codes in pieces]))
