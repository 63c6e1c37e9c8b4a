"""What a node sends across in a step, against the number of nodes: three lines, and what was measured beside them.

In units of S, the bytes of all gradients. Numbers of nodes on a logarithmic scale.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from utils.theory.arguments import check_amount, check_ranks
from utils.theory.traffic import step_bytes
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, LABEL, SMALL, TITLE

HEIGHT = 348
NODES = (2, 4, 8, 16, 32, 64, 128)
STRATEGIES: dict[str, str] = {"FSDP": "fsdp", "DDP": "ddp", "HSDP": "hsdp"}
LIMITS = {"FSDP": 3, "DDP": 2, "HSDP": 2}  # what many nodes tend to
TOLERANCE = 0.02  # of S: below it, measured and predicted count as equal

_LEFT, _TOP, _FOOT = 330, 82, HEIGHT - 52
_RIGHT = WIDTH - 40
_COLUMN = 150  # where the dots of what was measured stand
_DOT = 9


def across_in_S(strategy: str, nodes: int, ranks_per_node: int) -> float:
    """Bytes that a node sends across in a step, in S; strategy: "ddp", "fsdp" or "hsdp", its groups being the nodes."""
    check_ranks("nodes", nodes, "a number of nodes")
    check_ranks("ranks_per_node", ranks_per_node, "ranks on each node, the same on all")
    group = ranks_per_node if strategy == "hsdp" else None
    return step_bytes(1, strategy, nodes * ranks_per_node, group, nodes, 1).across


def node_curve_picture(
    measured: Mapping[str, float | None], place: tuple[int, int] = (2, 2), ranks_per_node: int = 8
) -> Picture:
    """The lines of DDP, FSDP and HSDP over 2 to 128 nodes of `ranks_per_node`, and dots on the left.

    measured: by name ("DDP", "FSDP", "HSDP") what a node sent across in a step, in S; None where nothing counts it.
    place: (nodes, ranks on each) on which that was. Raises ValueError for another name.
    """
    for name, value in measured.items():
        if name not in STRATEGIES:
            raise ValueError(f"measured has {name!r}; the names are {', '.join(STRATEGIES)}")
        if value is not None:
            check_amount(f"measured of {name}", value, "bytes in S", "such as 1.5", least=0)
    board = Board(HEIGHT, WIDTH)
    board.show(node_curve_scene(measured, place, ranks_per_node))
    return Picture(board.figure, node_curve_words(measured, place, ranks_per_node))


def node_curve_words(measured: Mapping[str, float | None], place: tuple[int, int], ranks_per_node: int) -> str:
    """The picture in words: its text alternative."""
    said = []
    for name, strategy in STRATEGIES.items():
        first, last = (across_in_S(strategy, nodes, ranks_per_node) for nodes in (NODES[0], NODES[-1]))
        told = f"{name}: {first:.2f} S on {NODES[0]} nodes, {last:.2f} S on {NODES[-1]}"
        if name in measured:
            law, found = across_in_S(strategy, *place), measured[name]
            told += f"; on {place[0]} x {place[1]} predicted {law:.2f} S, "
            if found is None:
                told += "not measurable here"
            else:
                told += "measured the same" if abs(found - law) <= TOLERANCE else f"measured {found:.2f} S"
        said.append(f"{told}.")
    return f"What a node of {ranks_per_node} sends across in a step. {' '.join(said)}"


def node_curve_scene(measured: Mapping[str, float | None], place: tuple[int, int], ranks_per_node: int) -> Scene:
    """The scene that `node_curve_picture` shows, WIDTH by HEIGHT pixels."""
    scene = Scene()
    title = "What a node sends across in a step, in units of S"
    scene.write(16, 18, title, TITLE, align="left", bold=True)
    scene.write(_COLUMN, 46, f"{place[0]} nodes of {place[1]}", LABEL, bold=True)
    scene.box(_COLUMN - 40, 58, _DOT, _DOT, COMMUNICATION.colour, edge=INK)
    scene.write(_COLUMN - 24, 62, "measured", SMALL, align="left")
    scene.write((_LEFT + _RIGHT) / 2, 46, f"{NODES[0]} to {NODES[-1]} nodes of {ranks_per_node}", LABEL, bold=True)
    scene.write((_LEFT + _RIGHT) / 2, 64, "predicted", SMALL)
    for level in range(4):
        y = _y(level)
        scene.line(70, y, 230, y, INK if not level else "#E4E4E4")
        scene.line(_LEFT, y, _RIGHT, y, INK if not level else "#E4E4E4")
        scene.write(60, y, f"{level} S", SMALL, align="right")
        scene.write(_LEFT - 8, y, f"{level} S", SMALL, align="right")
    _draw_measured(scene, measured, place)
    first, last = math.log2(NODES[0]), math.log2(NODES[-1])

    def x(nodes: int) -> float:
        return _LEFT + 20 + (math.log2(nodes) - first) / (last - first) * (_RIGHT - _LEFT - 40)

    for name, strategy in STRATEGIES.items():
        points = [(x(nodes), _y(across_in_S(strategy, nodes, ranks_per_node))) for nodes in NODES]
        for (x0, y0), (x1, y1) in pairwise(points):
            scene.line(x0, y0, x1, y1, INK, 2.2 if name == "HSDP" else 1.4)
        (x0, y0), at = points[0], across_in_S(strategy, NODES[0], ranks_per_node)
        scene.write(x0 + 4, y0 + 16, f"{name} {at:.2f}", SMALL, align="left", bold=True)
    for nodes in NODES:
        scene.line(x(nodes), _FOOT, x(nodes), _FOOT + 4, FAINT)
        scene.write(x(nodes), _FOOT + 15, f"{nodes}", SMALL)
    scene.write((_LEFT + _RIGHT) / 2, _FOOT + 36, f"nodes R, each of G = {ranks_per_node} ranks", SMALL)
    return scene


def _draw_measured(scene: Scene, measured: Mapping[str, float | None], place: tuple[int, int]) -> None:
    """A line at each law, a dot at what was measured, the name beside it."""
    for name, strategy in STRATEGIES.items():
        law = across_in_S(strategy, *place)
        scene.line(_COLUMN - 40, _y(law), _COLUMN - 8, _y(law), INK, 2.2 if name == "HSDP" else 1.4)
        found = measured.get(name)
        if found is not None:
            scene.box(_COLUMN - 24 - _DOT / 2, _y(found) - _DOT / 2, _DOT, _DOT, COMMUNICATION.colour, edge=INK)
        said = f"{name} {law:.2f} S" if found is None else f"{name} {found:.2f} S"
        differs = found is not None and abs(found - law) > TOLERANCE
        scene.write(_COLUMN, _y(law) - 11, said, SMALL, align="left", bold=differs)


def _y(level: float) -> float:
    """Pixels from the top, for a number of S."""
    return _FOOT - level / 3.2 * (_FOOT - _TOP)
