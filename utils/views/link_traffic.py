"""What a step puts on each link, drawn by width: nodes with their ranks, the links inside, the links between them.

One panel a strategy, all on one scale. A link is as wide as its bytes in a step are many: between nodes all that a node
sends, inside what a rank sends to the next one in its ring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from utils.theory.arguments import check_amount
from utils.theory.traffic import StepTraffic
from utils.theory.traffic.step import leaving_most
from utils.theory.units import format_bytes, shown
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, LABEL, PAPER, SMALL, TITLE, rank_colour

TOLERANCE = 0.02  # of S: below it, measured and predicted count as equal
MOST_NODES, MOST_RANKS, MOST_PANELS = 4, 16, 3

_TOP, _SWITCH, _LINK, _NODE = 66, 22, 62, 66
_PANEL = _SWITCH + _LINK + _NODE + 22
_LEFT, _GAP, _CHIP = 176, 24, 24
_WIDEST = 22.0  # pixels: the link with the most bytes


def link_traffic_picture(
    predicted: Mapping[str, StepTraffic],
    total_bytes: float,
    measured: Mapping[str, Sequence[float] | None] | None = None,
    title: str = "Bytes of a step on each link",
) -> Picture:
    """A panel a strategy, from top to bottom.

    predicted: name -> what `step_bytes` gives, all on the same nodes. total_bytes: S. measured: name -> bytes that each
    node's link sent, or None where nothing counts them.
    Raises ValueError for nothing to draw, for too many nodes or ranks, for other names or numbers of nodes measured.
    """
    measured = measured or {}
    _check(predicted, total_bytes, measured)
    board = Board(_TOP + _PANEL * len(predicted), WIDTH)
    board.show(link_traffic_scene(predicted, total_bytes, measured, title))
    return Picture(board.figure, link_traffic_words(predicted, total_bytes, measured, title))


def link_traffic_words(
    predicted: Mapping[str, StepTraffic],
    total_bytes: float,
    measured: Mapping[str, Sequence[float] | None],
    title: str,
) -> str:
    """The picture in words: its text alternative."""
    said = []
    for name, step in predicted.items():
        inside, across = step.inside / total_bytes, step.across / total_bytes
        told = f"{name}: each node sends {inside:.2f} S inside and {across:.2f} S across"
        if name in measured:
            found = measured[name]
            if found is None:
                told += ", not measurable here"
            elif all(abs(each / total_bytes - across) <= TOLERANCE for each in found):
                told += f", measured the same within {TOLERANCE:g} S"
            else:
                told += f", measured {', '.join(f'{each / total_bytes:.2f} S' for each in found)}"
        said.append(f"{told}.")
    first = next(iter(predicted.values()))
    where = f"{first.nodes} nodes of {first.world_size // first.nodes} ranks"
    return f"{title}, {where}, S = {format_bytes(total_bytes)}. {' '.join(said)}"


def link_traffic_scene(
    predicted: Mapping[str, StepTraffic],
    total_bytes: float,
    measured: Mapping[str, Sequence[float] | None],
    title: str,
) -> Scene:
    """The scene that `link_traffic_picture` shows."""
    scene = Scene()
    scene.write(16, 18, title, TITLE, align="left", bold=True)
    scene.write(
        16, 40, f"A line is as wide as its bytes are many, in units of S = {format_bytes(total_bytes)}", align="left"
    )
    most = max(max(_edge(step), step.across) for step in predicted.values()) or 1.0
    for number, (name, step) in enumerate(predicted.items()):
        _draw_panel(scene, name, step, total_bytes, measured.get(name), _TOP + number * _PANEL, _WIDEST / most)
    return scene


def _draw_panel(
    scene: Scene,
    name: str,
    step: StepTraffic,
    total_bytes: float,
    found: Sequence[float] | None,
    top: float,
    scale: float,
) -> None:
    """scale: pixels of width per byte."""
    on_node = step.world_size // step.nodes
    pitch = (WIDTH - _LEFT - 16) / step.nodes
    _draw_numbers(scene, name, step, total_bytes, found, top)
    scene.box(_LEFT, top, pitch * step.nodes - _GAP, _SWITCH, "#EEEEEE", edge=INK)
    scene.write(_LEFT + (pitch * step.nodes - _GAP) / 2, top + _SWITCH / 2, "switch", SMALL)
    for node in range(step.nodes):
        left, width = _LEFT + node * pitch, pitch - _GAP
        middle, floor = left + width / 2, top + _SWITCH + _LINK
        across = step.by_node[node].across * scale
        if not across:
            scene.line(middle, top + _SWITCH, middle, floor, FAINT, 1.0)
        scene.box(middle - across / 2, top + _SWITCH, across, _LINK, COMMUNICATION.colour)
        scene.box(left, floor, width, _NODE, PAPER, edge=INK)
        scene.write(left + 8, floor + 12, f"node {node}", SMALL, align="left", bold=True)
        apart = (width - 24 - _CHIP) / max(1, on_node - 1)
        x, y = (left + 12, floor + 40) if on_node > 1 else (middle - _CHIP / 2, floor + 40)
        edge = _edge(step) * scale
        scene.box(x, y - edge / 2, apart * (on_node - 1), edge, COMMUNICATION.colour)
        for place in range(on_node):
            rank = node * on_node + place
            scene.box(x + place * apart, y - _CHIP / 2, _CHIP, _CHIP, rank_colour(rank), edge=FAINT)
            scene.write(x + place * apart + _CHIP / 2, y, f"{rank}", SMALL)


def _draw_numbers(
    scene: Scene, name: str, step: StepTraffic, total_bytes: float, found: Sequence[float] | None, top: float
) -> None:
    """The panel's name, and what a node sends, on the left."""
    lines = [(name, LABEL, True), (f"across {step.across / total_bytes:.2f} S", SMALL, False)]
    if found is not None:
        same = all(abs(each - step.across) <= TOLERANCE * total_bytes for each in found)
        lines += [(f"measured {each / total_bytes:.2f} S", SMALL, not same) for each in (found[:1] if same else found)]
    lines.append((f"rank to rank {_edge(step) / total_bytes:.2f} S", SMALL, False))
    for number, (text, size, bold) in enumerate(lines):
        scene.write(16, top + 14 + 20 * number, text, size, align="left", bold=bold)


def _edge(step: StepTraffic) -> float:
    """Bytes from a rank to the next one on its node."""
    on_node = step.world_size // step.nodes
    edges = on_node - leaving_most(on_node, step.shard_size if step.shard_size > 1 else step.world_size, step.nodes)
    return step.inside / edges if edges else 0.0


def _check(
    predicted: Mapping[str, StepTraffic], total_bytes: float, measured: Mapping[str, Sequence[float] | None]
) -> None:
    check_amount("total_bytes", total_bytes, "S in bytes", "such as 64 * MB")
    if not isinstance(predicted, Mapping) or not 1 <= len(predicted) <= MOST_PANELS:
        raise ValueError(f"predicted is {shown(predicted)}; give 1 to {MOST_PANELS} names with what step_bytes says")
    shapes = {(step.nodes, step.world_size // step.nodes) for step in predicted.values()}
    if len(shapes) > 1:
        raise ValueError(
            f"predicted has nodes and ranks on each of {sorted(shapes)}; draw the same nodes in all panels"
        )
    ((nodes, on_node),) = shapes
    if nodes > MOST_NODES or nodes * on_node > MOST_RANKS:
        raise ValueError(
            f"there are {nodes} nodes of {on_node} ranks; at most {MOST_NODES} nodes and {MOST_RANKS} ranks are drawn"
        )
    for name, found in measured.items():
        if name not in predicted:
            raise ValueError(f"measured has {name!r}, which predicted has not: give both the same names")
        if found is not None and len(found) != nodes:
            raise ValueError(
                f"measured has {len(found)} links for {name!r}; there are {nodes} nodes: give one for each"
            )
