"""One colour and one hatch for each meaning, the same in every picture of the suite.

Meanings (parameters, gradients, …) have strong colours from the Okabe-Ito set, which people with the common kinds of
colour blindness can tell apart, and each has a hatch of its own, so that a print in grey still reads. Ranks have pale
colours from another set, made for black labels (Paul Tol's "light" scheme), and always carry their number: a pale
block with a number is a rank's, a strong block is a kind of data or of work.

Sources: Okabe and Ito, "Color Universal Design", 2008 (matplotlib's colour sequence "okabe_ito");
Paul Tol, "Colour Schemes", technical note SRON/EPS/TN/09-002, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

INK = "#222222"  # text and outlines
FAINT = "#8A8A8A"  # grid lines, outlines of what is empty
PAPER = "#FFFFFF"

# Text sizes in points as displayed; nothing is smaller than SMALL.
TITLE, LABEL, SMALL = 11.0, 9.5, 9.0


@dataclass(frozen=True)
class Style:
    """How a meaning looks: fill, hatch (matplotlib's letters), and its name in words."""

    name: str
    colour: str
    hatch: str


PARAMETERS = Style("parameters", "#0072B2", "")
GRADIENTS = Style("gradients", "#D55E00", "//")
OPTIMIZER_STATE = Style("optimizer state", "#009E73", "\\\\")
ACTIVATIONS = Style("activations", "#E69F00", "..")
BUFFERS = Style("buffers", "#5A5A5A", "xx")
COMMUNICATION = Style("communication", "#CC79A7", "--")
COMPUTE = Style("compute", "#56B4E9", "||")

MEANINGS: tuple[Style, ...] = (
    PARAMETERS,
    GRADIENTS,
    OPTIMIZER_STATE,
    ACTIVATIONS,
    BUFFERS,
    COMMUNICATION,
    COMPUTE,
)

_RANKS = ("#77AADD", "#EE8866", "#EEDD88", "#44BB99", "#FFAABB", "#AAAA00", "#99DDFF", "#BBCC33")


def rank_colour(rank: int) -> str:
    """The pale colour of a rank; 8 to 15 have those of 0 to 7, paler still. Write its number too."""
    colour = _RANKS[rank % len(_RANKS)]
    return colour if rank // len(_RANKS) % 2 == 0 else paler(colour)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on `colour` ("#RRGGBB")."""
    return INK if _luminance(colour) > 0.2 else PAPER


def paler(colour: str, share: float = 0.5) -> str:
    """`share` of `colour`, the rest white."""
    return "#" + "".join(f"{round(255 - share * (255 - channel)):02X}" for channel in _channels(colour))


def _luminance(colour: str) -> float:
    """Relative luminance, 0 (black) to 1 (white), as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
