"""A picture reaches the page with its text alternative, small and without a trace of when or by what it was made."""

import base64
import io
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.image import imread

from utils.views.figure import WIDTH, Picture, new_figure, png_bytes
from utils.views.png import encode, size


def picture(alt="two lines, one of them 3 times as steep"):
    figure = new_figure(200)
    axes = figure.add_axes((0.1, 0.2, 0.8, 0.7))
    axes.plot([0, 1], [0, 1])
    axes.plot([0, 1], [0, 3])
    return Picture(figure, alt)


def images_in(html):
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
    parser.feed(html)
    return found


def test_the_bundle_carries_html_with_alt_png_and_plain_text():
    alt = 'a < b & "c"'
    bundle = picture(alt)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    assert bundle["text/plain"] == alt
    [(tag, attributes)] = images_in(bundle["text/html"])
    assert tag == "img" and attributes["alt"] == alt
    assert attributes["src"] == "data:image/png;base64," + bundle["image/png"]
    assert base64.b64decode(bundle["image/png"]) == picture().image_bytes()


def test_a_picture_without_words_is_refused():
    for nothing in ("", "  ", None):
        with pytest.raises(ValueError, match="say in words"):
            Picture(new_figure(100), nothing)


def test_the_png_has_the_displayed_size_and_no_metadata():
    png = picture().image_bytes()
    assert size(png) == (WIDTH, 200)
    assert all(chunk not in png for chunk in (b"tEXt", b"tIME", b"iTXt", b"zTXt", b"atplotlib"))
    assert len(png) < 20_000
    assert png == picture().image_bytes()


def test_pixels_survive_the_palette():
    figure = picture().figure
    stored = imread(io.BytesIO(png_bytes(figure)))[..., :3]
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255
    assert stored.shape == drawn.shape
    assert np.abs(stored - drawn).max() < 0.1
    assert np.abs(stored - drawn).mean() < 0.002


def test_many_colours_become_their_nearest():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (64, 64, 3), np.uint8)
    pixels[:32] = (10, 200, 30)
    stored = (imread(io.BytesIO(encode(pixels)))[..., :3] * 255).round().astype(int)
    assert (stored[:32] == (10, 200, 30)).all()
    assert np.abs(stored - pixels.astype(int)).mean() < 25


def test_pyplot_is_never_used():
    import subprocess
    import sys

    code = (
        "import sys, utils.views.collective_calculator, utils.views.timeline, utils.views.traffic;"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
