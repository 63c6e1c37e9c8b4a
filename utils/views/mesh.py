"""A device mesh as a picture: a row for each replica, a column for each place in a shard group, nodes around them.

Ranks of a row share one copy of the model: they gather and reduce-scatter. Ranks of a column hold the same part of it:
they all-reduce. A line of communication that leaves a node is drawn thick.
"""

from __future__ import annotations

from utils.theory.arguments import check_whole, check_yes_or_no
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, LABEL, PAPER, SMALL, TITLE, rank_colour

MOST_NODES, MOST_ON_NODE = 4, 8
_LEFT, _TOP, _BOX, _BOX_HEIGHT = 212, 104, 62, 40
_GAP, _ROW = 14, 78
_FOOT = 44
_THIN, _THICK = 1.6, 5.0


def mesh_picture(nodes: int = 2, ranks_per_node: int = 2, transposed: bool = False, title: str = "") -> Picture:
    """The mesh of HSDP with a shard group on each node: `nodes` x `ranks_per_node`, replicate x shard.

    transposed: the mistake that runs without an error: shard groups across nodes, replicas inside.
    Raises ValueError for more than 4 nodes, or more than 8 ranks on each.
    """
    _check(nodes, ranks_per_node, transposed)
    board = Board(mesh_height(nodes), WIDTH)
    board.show(mesh_scene(nodes, ranks_per_node, transposed, title))
    return Picture(board.figure, mesh_words(nodes, ranks_per_node, transposed, title))


def mesh_height(nodes: int) -> int:
    """Pixels."""
    return _TOP + nodes * _ROW + _FOOT


def groups(nodes: int, ranks_per_node: int, transposed: bool = False) -> tuple[list[list[int]], list[list[int]]]:
    """(shard groups, replica groups), each a list of ranks."""
    rows = [[node * ranks_per_node + place for place in range(ranks_per_node)] for node in range(nodes)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return (columns, rows) if transposed else (rows, columns)


def mesh_words(nodes: int, ranks_per_node: int, transposed: bool = False, title: str = "") -> str:
    """The picture in words: its text alternative."""
    shard, replica = groups(nodes, ranks_per_node, transposed)
    where = ("across nodes", "inside a node") if transposed else ("inside a node", "across nodes")
    return (
        f"{title or _title(nodes, ranks_per_node, transposed)}. {nodes} nodes of {ranks_per_node} ranks. Shard groups, "
        f"{where[0]}: {_listed(shard)}. Replica groups, {where[1]}: {_listed(replica)}."
    )


def mesh_scene(nodes: int, ranks_per_node: int, transposed: bool = False, title: str = "") -> Scene:
    """The scene that `mesh_picture` shows, WIDTH by `mesh_height` pixels."""
    scene = Scene()
    scene.write(16, 18, title or _title(nodes, ranks_per_node, transposed), TITLE, align="left", bold=True)
    scene.write(16, 40, "A frame is a node. Thick: it leaves the node.", SMALL, align="left")
    along, down = ("replica", "shard") if transposed else ("shard", "replica")
    width = ranks_per_node * (_BOX + _GAP) - _GAP
    scene.write(_LEFT, 66, f"{_SAID[along]} →", SMALL, align="left", bold=True)
    scene.write(_LEFT, 84, _WHAT[along], SMALL, align="left")
    scene.write(_LEFT - 24, 66, f"{_SAID[down]} ↓", SMALL, align="right", bold=True)
    scene.write(_LEFT - 24, 84, _WHAT[down], SMALL, align="right")
    for node in range(nodes):
        y = _TOP + node * _ROW
        scene.box(_LEFT - 12, y - 8, width + 24, _BOX_HEIGHT + 16, PAPER, edge=INK)
        scene.write(_LEFT - 24, y + _BOX_HEIGHT / 2 - 9, f"node {node}", LABEL, align="right", bold=True)
        if not transposed:
            scene.write(_LEFT - 24, y + _BOX_HEIGHT / 2 + 9, f"replica {node}", SMALL, align="right")
        for place in range(ranks_per_node):
            rank, x = node * ranks_per_node + place, _LEFT + place * (_BOX + _GAP)
            part, of = (node, nodes) if transposed else (place, ranks_per_node)
            scene.box(x, y, _BOX, _BOX_HEIGHT, rank_colour(rank), edge=FAINT)
            scene.write(x + _BOX / 2, y + 12, f"rank {rank}", SMALL, bold=True)
            scene.write(x + _BOX / 2, y + 28, f"part {part}/{of}", SMALL)
            if place:
                middle = y + _BOX_HEIGHT / 2
                scene.line(x - _GAP, middle, x, middle, COMMUNICATION.colour, _THIN)
            if node:
                scene.line(x + _BOX / 2, y - _ROW + _BOX_HEIGHT, x + _BOX / 2, y, COMMUNICATION.colour, _THICK)
    what = "the all-reduces, of one part each" if not transposed else "every all-gather and reduce-scatter"
    scene.write(16, mesh_height(nodes) - 26, f"On the links between nodes: {what}.", SMALL, align="left")
    return scene


_SAID = {"shard": "shard", "replica": "replicate"}
_WHAT = {"shard": "all-gather, reduce-scatter", "replica": "all-reduce"}


def _title(nodes: int, ranks_per_node: int, transposed: bool) -> str:
    if transposed:
        return f"The same mesh transposed: shard groups of {nodes} across nodes"
    return f"HSDP: a mesh of {nodes} x {ranks_per_node}, replicate x shard"


def _listed(found: list[list[int]]) -> str:
    return ", ".join(f"({', '.join(map(str, group))})" for group in found)


def _check(nodes: int, ranks_per_node: int, transposed: bool) -> None:
    check_whole("nodes", nodes, "how many nodes are drawn", most=MOST_NODES)
    check_whole("ranks_per_node", ranks_per_node, "ranks on each node, the same on all", most=MOST_ON_NODE)
    check_yes_or_no("transposed", transposed)
