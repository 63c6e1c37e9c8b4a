"""How the kinds of held bytes look, in the same order and colours in every picture of memory, and round byte scales."""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.units import GB, KB, MB, TB, GiB, KiB, MiB, TiB
from utils.views.board import Scene
from utils.views.palette import (
    ACTIVATIONS,
    BUFFERS,
    COMMUNICATION,
    FAINT,
    GRADIENTS,
    OPTIMIZER_STATE,
    PAPER,
    PARAMETERS,
)


@dataclass(frozen=True)
class Look:
    """A kind's colour; hatched ones are striped in it. Master weights are the optimizer's too, hence its colour."""

    name: str
    colour: str
    hatched: bool = False


WEIGHTS = Look("weights", PARAMETERS.colour)
GRADIENT = Look("gradients", GRADIENTS.colour)
MASTER_WEIGHTS = Look("master weights", OPTIMIZER_STATE.colour, hatched=True)
MOMENTS = Look("moments", OPTIMIZER_STATE.colour)
ACTIVATION = Look("activations", ACTIVATIONS.colour)
OTHER = Look("other", BUFFERS.colour)

LOOKS: dict[str, Look] = {look.name: look for look in (WEIGHTS, GRADIENT, MASTER_WEIGHTS, MOMENTS, ACTIVATION, OTHER)}

#: By field of `theory.moments.Moment`: a gathered copy, or logits, striped in the colour of its kind.
PART_LOOKS: dict[str, Look] = {
    "weights": WEIGHTS,
    "gathered": Look("gathered weights", PARAMETERS.colour, hatched=True),
    "gradients": GRADIENT,
    "master_weights": MASTER_WEIGHTS,
    "optimizer": MOMENTS,
    "temporaries": Look("optimizer's temporaries", OPTIMIZER_STATE.colour, hatched=True),
    "activations": ACTIVATION,
    "logits": Look("logits", ACTIVATIONS.colour, hatched=True),
    "working": OTHER,
    "buffers": Look("communication buffers", COMMUNICATION.colour),
}


def draw_block(scene: Scene, look: Look, x: float, y: float, width: float, height: float) -> None:
    """A block of that kind, (x, y) its upper left corner; nothing if it has no area."""
    if width > 0 and height > 0:
        if look.hatched:
            scene.box(x, y, width, height, PAPER, look.colour, hatched=True)
        else:
            scene.box(x, y, width, height, look.colour)


def draw_swatch(scene: Scene, look: Look, x: float, y: float) -> None:
    """A small sample of the kind for a key, centred on height y, outlined so that stripes have an edge."""
    draw_block(scene, look, x, y - 6, 14, 12)
    scene.line(x, y + 6, x + 14, y + 6, FAINT, 0.5)


def round_steps(most: float, binary: bool = True, count: int = 4) -> list[float]:
    """Round sizes in bytes from 0 up to `most`, at most `count` of them above 0: for the lines of a scale.

    The step is 1, 2 or 5 times a power of ten of the largest unit that fits, KiB, MiB, … or kB, MB, …
    """
    units = (1, KiB, MiB, GiB, TiB) if binary else (1, KB, MB, GB, TB)
    unit = max([u for u in units if u <= most], default=1)
    step = unit / 10 if unit > 1 else 1
    while True:
        for factor in (1, 2, 5):
            if most / (factor * step) < count + 1:
                size = factor * step
                return [i * size for i in range(int(most / size + 1e-9) + 1)]
        step *= 10
