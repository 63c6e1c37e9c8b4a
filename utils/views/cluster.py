"""A cluster as a picture: the switch, a link to each node, the ranks on the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from utils.theory.units import format_seconds, format_speed
from utils.views.board import Board, Scene, Words, extent
from utils.views.figure import WIDTH, Picture
from utils.views.palette import FAINT, INK, LABEL, PAPER, SMALL, TITLE, rank_colour

_MARGIN, _GAP = 20, 10  # pixels: around everything, between two nodes
_SWITCH, _SWITCH_HEIGHT = 64, 26  # where the switch's box begins, and its height
_LINK = 84  # length of a link
_NODE = _SWITCH + _SWITCH_HEIGHT + _LINK  # where the nodes' boxes begin
_CHIP, _CHIP_HEIGHT, _BETWEEN = 36, 24, 4  # a rank's block, and the space between two
_HEAD, _LINE = 26, 16  # a node's heading; a line of text
_MOST_NODES, _WIDEST_NODE = 8, 400


@dataclass(frozen=True)
class _Plan:
    """Where the nodes stand. `shown`: how many are drawn as themselves; one more place stands for the rest, if any."""

    shown: int
    left: float
    pitch: float
    per_row: int
    height: float  # of a node

    @property
    def node_width(self) -> float:
        return self.pitch - _GAP

    def centre(self, place: int) -> float:
        return self.left + (place + 0.5) * self.pitch


def cluster_picture(cluster: Any, title: str = "") -> Picture:
    """Nodes with their ranks, each joined to the switch by a link with its speed and latency.

    cluster: a record with `nodes`, `ranks_per_node`, `bits_per_second` (of a link, in each direction), `latency`
        (seconds from node to node) and `kind`. Of more than eight nodes seven are drawn.
    The picture says if the links are emulated. Its words do not, for they are the same on every machine.
    """
    board = Board(round(_NODE + _plan(cluster).height + _MARGIN), WIDTH)
    board.show(cluster_scene(cluster, title))
    return Picture(board.figure, cluster_words(cluster, title))


def cluster_scene(cluster: Any, title: str = "") -> Scene:
    """The scene that `cluster_picture` shows."""
    plan = _plan(cluster)
    scene = Scene()
    heading = title or f"Cluster: {_counted(cluster)}"
    emulated = ", emulated link" + ("s" if cluster.nodes > 1 else "") if cluster.kind == "emulated" else ""
    scene.write(_MARGIN, 18, heading + emulated, TITLE, align="left", bold=True)
    scene.write(_MARGIN, 40, f"{_link_in_words(cluster)} A numbered block is a rank.", align="left")
    places = plan.shown + (plan.shown < cluster.nodes)
    left, right = plan.centre(0) - plan.node_width / 2, plan.centre(places - 1) + plan.node_width / 2
    scene.box(left, _SWITCH, right - left, _SWITCH_HEIGHT, "#EEEEEE", edge=INK)
    scene.write((left + right) / 2, _SWITCH + _SWITCH_HEIGHT / 2, "switch", LABEL)
    for node in range(plan.shown):
        _draw_link(scene, cluster, plan, plan.centre(node))
        _draw_node(scene, cluster, plan, node)
    if places > plan.shown:
        scene.write(plan.centre(plan.shown), _NODE + _HEAD / 2, f"{cluster.nodes - plan.shown} more", SMALL)
        scene.write(plan.centre(plan.shown), _NODE + _HEAD / 2 + _LINE, "nodes", SMALL)
    return scene


def cluster_words(cluster: Any, title: str = "") -> str:
    """The picture in words: its text alternative, the same on every machine."""
    last = cluster.nodes * cluster.ranks_per_node - 1
    ranks = f"ranks 0 to {last}, {cluster.ranks_per_node} a node in order" if last else "rank 0"
    return f"{f'{title}. ' if title else ''}Cluster of {_counted(cluster)}: {ranks}. {_link_in_words(cluster)}"


def _plan(cluster: Any) -> _Plan:
    places = min(cluster.nodes, _MOST_NODES)
    shown = cluster.nodes if cluster.nodes <= _MOST_NODES else _MOST_NODES - 1
    pitch = min((WIDTH - 2 * _MARGIN + _GAP) / places, _WIDEST_NODE)
    fit = int((pitch - _GAP - _BETWEEN) / (_CHIP + _BETWEEN))
    per_row = max(1, min(fit, 8, cluster.ranks_per_node))
    rows = -(-cluster.ranks_per_node // per_row)
    height = _HEAD + rows * (_CHIP_HEIGHT + _BETWEEN) + _BETWEEN
    return _Plan(shown, (WIDTH - places * pitch) / 2, pitch, per_row, height)


def _draw_node(scene: Scene, cluster: Any, plan: _Plan, node: int) -> None:
    left = plan.centre(node) - plan.node_width / 2
    scene.box(left, _NODE, plan.node_width, plan.height, PAPER, edge=INK)
    scene.write(plan.centre(node), _NODE + _HEAD / 2, f"node {node}", LABEL, bold=True)
    row_width = plan.per_row * (_CHIP + _BETWEEN) - _BETWEEN
    for place in range(cluster.ranks_per_node):
        row, column = divmod(place, plan.per_row)
        x = plan.centre(node) - row_width / 2 + column * (_CHIP + _BETWEEN)
        y = _NODE + _HEAD + row * (_CHIP_HEIGHT + _BETWEEN)
        rank = node * cluster.ranks_per_node + place
        scene.box(x, y, _CHIP, _CHIP_HEIGHT, rank_colour(rank), edge=FAINT)
        scene.write(x + _CHIP / 2, y + _CHIP_HEIGHT / 2, f"{rank}", SMALL)


def _draw_link(scene: Scene, cluster: Any, plan: _Plan, x: float) -> None:
    """A line from the switch to the node, interrupted by what is written on it where that fits."""
    top, bottom = _SWITCH + _SWITCH_HEIGHT, _NODE
    lines = [Words(x, 0, text, SMALL) for text in _labels(cluster)]
    if any(extent(word)[2] - extent(word)[0] > plan.node_width for word in lines):
        lines = []
    half = _LINE * len(lines) / 2
    middle = (top + bottom) / 2
    for number, word in enumerate(lines):
        scene.write(x, middle - half + _LINE * (number + 0.5), word.text, SMALL)
    scene.line(x, top, x, middle - half, INK, 1.6)
    scene.line(x, middle + half, x, bottom, INK, 1.6)


def _labels(cluster: Any) -> Iterator[str]:
    yield format_speed(cluster.bits_per_second)
    if cluster.latency:
        yield f"+ {format_seconds(cluster.latency)}"


def _link_in_words(cluster: Any) -> str:
    latency = f", latency {format_seconds(cluster.latency)}" if cluster.latency else ""
    return f"{'Each' if cluster.nodes > 1 else 'The'} link: {format_speed(cluster.bits_per_second)} each way{latency}."


def _counted(cluster: Any) -> str:
    nodes, ranks = cluster.nodes, cluster.ranks_per_node
    return f"{nodes} node{'s' * (nodes > 1)} of {ranks} rank{'s' * (ranks > 1)}"
