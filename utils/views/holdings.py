"""What a rank holds over a step: bytes by kind, stacked, event after event."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Any

from utils.theory.units import format_bytes
from utils.views.board import Board, Scene, Words, extent
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import LOOKS, draw_block, draw_swatch, round_steps
from utils.views.palette import FAINT, INK, SMALL, TITLE

_LEFT, _TOP, _PLOT = 84, 92, 220
_SPAN = WIDTH - _LEFT - 16
HEIGHT = _TOP + _PLOT + 44
_WIDE = 3  # columns of other events


def history_picture(samples: Sequence[Any], title: str = "") -> Picture:
    """Stacked bytes at each event of a history.

    samples: in order, records with `phase` ("forward", "backward", "step", "note"), `label`, and `holdings`, which has
        `total` and `of(kind)` in bytes for each kind in `kinds.LOOKS`. At least one.
    A column is an event, whatever time passed before the next: the picture is the same on every run.
    Raises ValueError if there are no samples.
    """
    if not samples:
        raise ValueError("there are no samples to draw: run a step of the ledger's model inside `with`")
    board = Board(HEIGHT, WIDTH)
    board.show(history_scene(samples, title))
    return Picture(board.figure, history_words(samples, title))


def history_scene(samples: Sequence[Any], title: str = "") -> Scene:
    """The scene that `history_picture` shows."""
    scene = Scene()
    most = max(1, *(sample.holdings.total for sample in samples))
    scene.write(_LEFT, 18, title or "Held over a step", TITLE, align="left", bold=True)
    _draw_key(scene, samples)
    _draw_scale(scene, most)
    bottoms = [0.0] * len(samples)
    edges = _edges(samples)
    for kind, look in LOOKS.items():
        sizes = [sample.holdings.of(kind) for sample in samples]
        # Events after which nothing changed are one block.
        for _, run in groupby(range(len(samples)), key=lambda i, sizes=sizes: (bottoms[i], sizes[i])):
            places = list(run)
            left, right = edges[places[0]], edges[places[-1] + 1]
            foot, height = _TOP + _PLOT - bottoms[places[0]] * _PLOT / most, sizes[places[0]] * _PLOT / most
            draw_block(scene, look, left, foot - height, right - left, height)
        bottoms = [bottom + size for bottom, size in zip(bottoms, sizes, strict=True)]
    _draw_phases(scene, samples, edges)
    return scene


def history_words(samples: Sequence[Any], title: str = "") -> str:
    """The picture in words: its text alternative. Bytes only, no times: the same on every run."""
    peak = max(samples, key=lambda sample: sample.holdings.total)
    parts = []
    for kind in LOOKS:
        sizes = [sample.holdings.of(kind) for sample in samples]
        if not any(sizes):
            continue
        if len(set(sizes)) == 1:
            parts.append(f"{kind} {sizes[0]:,} B throughout")
        else:
            at = samples[sizes.index(max(sizes))].label
            parts.append(f"{kind} {sizes[0]:,} B at first, at most {max(sizes):,} B ({at}), {sizes[-1]:,} B at last")
    return (
        f"{title or 'Held over a step'}, {len(samples)} events: {'; '.join(parts)}. "
        f"Most in all: {peak.holdings.total:,} B when {peak.label}."
    )


def _draw_key(scene: Scene, samples: Sequence[Any]) -> None:
    """Each kind with the most that it held; kinds that held nothing are left out."""
    held = [(look, max(s.holdings.of(kind) for s in samples)) for kind, look in LOOKS.items()]
    shown = [(look, most) for look, most in held if most]
    for place, (look, most) in enumerate(shown):
        x, y = _LEFT + (place % 3) * 250, 44 + 20 * (place // 3)
        draw_swatch(scene, look, x, y)
        scene.write(x + 20, y, f"{look.name}: at most {format_bytes(most)}", SMALL, align="left")


def _draw_scale(scene: Scene, most: float) -> None:
    for size in round_steps(most):
        y = _TOP + _PLOT - size * _PLOT / most
        scene.line(_LEFT - 4, y, _LEFT + _SPAN, y, FAINT, 0.5)
        scene.write(_LEFT - 8, y, format_bytes(size), SMALL, align="right")
    scene.line(_LEFT, _TOP + _PLOT, _LEFT + _SPAN, _TOP + _PLOT, INK)


def _edges(samples: Sequence[Any]) -> list[float]:
    """Where each event's column begins, and where the last ends: steps and notes are few and get wide columns."""
    widths = [_WIDE if sample.phase in ("step", "note") else 1 for sample in samples]
    return [_LEFT + _SPAN * position / sum(widths) for position in accumulate(widths, initial=0)]


def _draw_phases(scene: Scene, samples: Sequence[Any], edges: list[float]) -> None:
    """Below: which events belong to forward, backward, step; the name where it fits."""
    y = _TOP + _PLOT + 8
    for phase, run in groupby(range(len(samples)), key=lambda i: samples[i].phase):
        places = list(run)
        left, right = edges[places[0]], edges[places[-1] + 1]
        scene.line(left + 1, y, right - 1, y, INK, 1.4)
        scene.line(right, _TOP, right, y, FAINT, 0.5)
        name = Words((left + right) / 2, y + 14, samples[places[0]].label if phase == "note" else phase, SMALL)
        ink_left, _, ink_right, _ = extent(name)
        if ink_right - ink_left < right - left - 4:
            scene.words.append(name)
