"""How every figure of the suite reaches the page: as a picture with its text alternative.

JupyterLab and nbconvert ignore an alternative text in the metadata of an image, so a `Picture` shows itself as HTML,
an <img> with `alt`, which screen readers find. It also carries image/png for exporters that know no HTML, and the
alternative text as text/plain, which nbval compares: what a picture says is checked like any other output.

Figures are `matplotlib.figure.Figure`, never pyplot's: nothing is shown twice and nothing is kept alive.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from utils.views.palette import PAPER
from utils.views.png import encode

WIDTH = 840  # pixels as displayed: fits JupyterLab's output area beside an open side bar
DOTS_PER_INCH = 100  # at this density a point of text is 1.39 displayed pixels


@dataclass(frozen=True)
class Picture:
    """A figure and what it shows, in words.

    alt: what a reader who cannot see the figure needs: the numbers in it, not "a bar chart". It must be the same
         on every run, so measured values are rounded in it to the tolerance that the text around it states.
    """

    figure: Figure
    alt: str

    def __post_init__(self) -> None:
        if not isinstance(self.alt, str) or not self.alt.strip():
            raise ValueError(f"alt is {self.alt!r}; say in words what the figure shows")

    def image_bytes(self) -> bytes:
        """The figure as a PNG, without time stamp or name of a program in it."""
        return png_bytes(self.figure)

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return mime_bundle(self.image_bytes(), self.alt)


def new_figure(height: int, width: int = WIDTH) -> Figure:
    """An empty figure of `width` by `height` displayed pixels."""
    return Figure(figsize=(width / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH, facecolor=PAPER)


def png_bytes(figure: Figure, level: int = 9) -> bytes:
    """The figure as PNG bytes, at its displayed size; `level` is zlib's, 1 (fast) to 9 (small)."""
    canvas = figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)
    canvas.draw()
    return encode(np.asarray(canvas.buffer_rgba()), level)


def mime_bundle(png: bytes, alt: str) -> dict[str, str]:
    """One picture in the three forms that front ends, exporters and nbval each take."""
    encoded = base64.b64encode(png).decode("ascii")
    return {
        "text/html": f'<img alt="{escape(alt)}" src="data:image/png;base64,{encoded}">',
        "image/png": encoded,
        "text/plain": alt,
    }
