"""Pictures of a collective: what it leaves on each rank, who sends to whom, and the bytes that this costs.

Everything drawn comes from `utils.theory`; a rank's blocks have its pale colour and its number wherever they went.
"""

from __future__ import annotations

import math
from itertools import groupby

from utils.theory.collectives import Block, Holdings, holdings, leaves, messages
from utils.theory.traffic import check_group, traffic_by_rank
from utils.theory.units import format_bytes
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, PAPER, SMALL, TITLE, paler, rank_colour

HEIGHT = 442  # pixels
HEIGHT_WITHOUT_COST = 284
MOST_RANKS = 16  # more do not fit with readable text
KINDS = ("broadcast", "all_reduce", "all_gather", "reduce_scatter", "send", "reduce", "scatter", "gather", "all_to_all")

SIZE_OF = {
    "broadcast": "the buffer",
    "all_reduce": "the buffer of one rank",
    "all_gather": "the gathered result",
    "reduce_scatter": "the whole input of one rank",
    "send": "the message",
    "reduce": "the buffer of one rank",
    "scatter": "the whole list at the root",
    "gather": "the whole list at the root",
    "all_to_all": "the whole input of one rank",
}

_GRID_WIDTH, _GRID_TOP, _GRID_HEIGHT = 256, 92, 160
_LEFT, _RIGHT = 70, WIDTH - 256 - 16  # where the two grids begin
_UNDER_GRID = _GRID_TOP + _GRID_HEIGHT + 14
_MOST_STRIPES = 6  # a sum of more ranks is one hatched block: narrower stripes cannot be told apart
_SUM_FILL = "#E6E6E6"
_BAR_FOOT, _PIXELS_PER_S, _BAR_WIDTH = 414, 34, 344


def collective_picture(
    kind: str, world_size: int, total_bytes: float | None = None, root: int = 0, cost: bool = True
) -> Picture:
    """Before, after and cost of one collective of `total_bytes` (S) on `world_size` ranks (at most 16).

    kind: one of `KINDS`; "send" is a message from `root` to the next rank.
    cost: False leaves out what is sent, and with it S: for a reader who is still to predict it.
    Raises ValueError for what `collective_bytes` refuses, and for more ranks than fit.
    """
    board = Board(HEIGHT if cost else HEIGHT_WITHOUT_COST, WIDTH)
    board.show(collective_scene(kind, world_size, total_bytes, root, cost))
    return Picture(board.figure, collective_words(kind, world_size, total_bytes, root, cost))


def collective_words(
    kind: str, world_size: int, total_bytes: float | None = None, root: int = 0, cost: bool = True
) -> str:
    """The picture in words: its text alternative."""
    if not cost:
        return f"{title(kind, world_size, root)} {_arrows(kind, world_size, root)}"
    sent, received = _shares(kind, world_size, total_bytes, root)
    return (
        f"{title(kind, world_size, root)} S = {format_bytes(total_bytes)} is {SIZE_OF[kind]}. "
        f"Sent: {_by_rank(sent, total_bytes)}. Received: {_by_rank(received, total_bytes)}."
    )


def _arrows(kind: str, n: int, root: int) -> str:
    """ "Who sends to whom: 0 to 1, 1 to 2." """
    pairs = [(message.source, message.target) for message in messages(kind, n, root)]
    if kind == "all_to_all":
        return "Every rank sends to every other."
    return f"Who sends to whom: {', '.join(f'{a} to {b}' for a, b in pairs) or 'nobody'}."


def title(kind: str, world_size: int, root: int = 0) -> str:
    """One sentence: which collective, on how many ranks, and what is true afterwards."""
    name = "send and receive" if kind == "send" else kind
    return f"{name} on {world_size} rank{'s' if world_size > 1 else ''}: afterwards {leaves(kind, world_size, root)}."


def collective_scene(
    kind: str, world_size: int, total_bytes: float | None = None, root: int = 0, cost: bool = True
) -> Scene:
    """The scene that `collective_picture` shows; arguments and errors as there."""
    check_group(kind, world_size, root, kinds=KINDS)
    if world_size > MOST_RANKS:
        raise ValueError(f"world_size is {world_size}; a picture has room for at most {MOST_RANKS} ranks: draw fewer")
    before, after = holdings(kind, world_size, root)
    scene = Scene()
    scene.write(_LEFT, 18, title(kind, world_size, root), TITLE, align="left", bold=True)
    size = f"S = {format_bytes(total_bytes)}: {SIZE_OF[kind]}. " if cost and total_bytes is not None else ""
    scene.write(_LEFT, 39, f"{size}Colour and number of a block: the rank it comes from.", align="left")
    for held, left, heading in ((before, _LEFT, "before"), (after, _RIGHT, "after")):
        _draw_grid(scene, held, left, heading, others_hold=kind in _OTHERS)
        if key := _key(kind, held, heading):
            scene.write(left + _GRID_WIDTH / 2, _UNDER_GRID, key, SMALL)
    _draw_messages(scene, kind, world_size, root, cost)
    if cost:
        sent, received = _shares(kind, world_size, total_bytes, root)
        _draw_bars(scene, sent, total_bytes, _LEFT, "Sent", hatched=False)
        _draw_bars(scene, received, total_bytes, WIDTH - _BAR_WIDTH - 16, "Received", hatched=True)
    return scene


# Where a rank that gives nothing has a buffer all the same: what is pale there, before and after.
_OTHERS = {
    "broadcast": {"before": "pale: is overwritten"},
    "send": {"before": "pale: overwritten, or takes no part", "after": "pale: takes no part, unchanged"},
}


def _key(kind: str, held: Holdings, heading: str) -> str:
    """What else than colours and numbers needs a word in a grid."""
    blocks = [block for rank in held for block in rank]
    if None in blocks and kind in _OTHERS:
        return _OTHERS[kind][heading]
    parts = []
    if any(block and len(block.origins) > 1 for block in blocks):
        parts.append(f"{'striped' if len(held) <= _MOST_STRIPES else 'hatched'}: sum of all {len(held)} ranks")
    if None in blocks:
        parts.append("white: nothing")
    return "; ".join(parts)


def _shares(kind: str, n: int, total_bytes: float | None, root: int) -> tuple[list[float], list[float]]:
    """(sent, received) by rank, in S."""
    check_group(kind, n, root, kinds=KINDS)
    if total_bytes is None:
        raise ValueError("total_bytes is None; give the size in bytes, such as 32 * MiB, or cost=False")
    size = total_bytes or 1  # the shares of an empty message are those of any other
    traffic = traffic_by_rank(kind, size, n, root)
    return [rank.sent / size for rank in traffic], [rank.received / size for rank in traffic]


def _by_rank(shares: list[float], total_bytes: float) -> str:
    """ "every rank 1.50 S (96 MiB)" or "rank 0: 1.00 S (64 MiB), ranks 1 to 3: nothing"."""
    if len(set(shares)) == 1:
        return f"every rank {in_words(shares[0], total_bytes)}"
    parts = []
    for share, group in groupby(range(len(shares)), key=lambda rank: shares[rank]):
        ranks = list(group)
        name = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]} each"
        parts.append(f"{name} {in_words(share, total_bytes)}")
    return ", ".join(parts)


def in_words(share: float, total_bytes: float) -> str:
    """ "1.50 S (96 MiB)", or "nothing"."""
    return f"{share:.2f} S ({format_bytes(share * total_bytes)})" if share else "nothing"


def _draw_grid(scene: Scene, held: Holdings, left: float, heading: str, others_hold: bool) -> None:
    """One column a rank, one row a chunk; chunks that hold the same, one below the other, are filled at once.

    others_hold: whether a rank without a block has a buffer of its own all the same; it is drawn pale.
    """
    n, rows = len(held), len(held[0])
    column, row = _GRID_WIDTH / n, _GRID_HEIGHT / rows
    scene.write(left + _GRID_WIDTH / 2, 62, heading, bold=True)
    for rank, blocks in enumerate(held):
        x = left + rank * column
        if n <= 12 or rank % 2 == 0:
            scene.write(x + column / 2, _GRID_TOP - 10, f"rank {rank}" if n <= 5 else f"{rank}", SMALL)
        for origins, run in groupby(range(rows), key=lambda place: blocks[place].origins if blocks[place] else ()):
            places = list(run)
            y, height = _GRID_TOP + places[0] * row, len(places) * row
            if len(origins) > _MOST_STRIPES:
                scene.box(x, y, column, height, _SUM_FILL, FAINT, hatched=True)
                continue
            for stripe, origin in enumerate(origins):
                width = column / len(origins)
                scene.box(x + stripe * width, y, width, height, rank_colour(origin))
            if not origins and others_hold:
                scene.box(x, y, column, height, paler(rank_colour(rank), 0.25))
        for place, block in enumerate(blocks):
            if block is None and others_hold:
                block = Block((rank,), place)
            if block is not None and n <= (8 if len(block.origins) == 1 else 4):
                scene.write(x + column / 2, _GRID_TOP + (place + 0.5) * row, _label(block), SMALL)
    if n > 5:
        scene.write(left - 6, _GRID_TOP - 10, "rank", SMALL, align="right")
    if rows > 1:
        for place in range(rows) if rows <= 8 else (0, rows - 1):
            scene.write(left - 6, _GRID_TOP + (place + 0.5) * row, f"chunk {place}", SMALL, align="right")
    for i in range(n + 1):
        x = left + i * column
        scene.line(x, _GRID_TOP, x, _GRID_TOP + _GRID_HEIGHT, width=1.6 if i in (0, n) else 1.0)
    for i in range(rows + 1):
        y = _GRID_TOP + i * row
        scene.line(left, y, left + _GRID_WIDTH, y, width=1.6 if i in (0, rows) else 0.6)


def _label(block: Block) -> str:
    """The ranks that a block comes from, as far as they fit: the stripes tell the rest."""
    return "+".join(map(str, block.origins)) if len(block.origins) <= 3 else "sum"


def _draw_messages(scene: Scene, kind: str, n: int, root: int, cost: bool) -> None:
    """The ranks on a circle, an arrow for each pair that exchanges data."""
    middle_x, middle_y = (_LEFT + _GRID_WIDTH + _RIGHT - 56) / 2, _GRID_TOP + _GRID_HEIGHT / 2
    radius, disc = (66, 8) if n > 8 else (60, 9)

    def at(rank: int) -> tuple[float, float]:
        angle = 2 * math.pi * rank / n - math.pi / 2
        return middle_x + radius * math.cos(angle), middle_y + radius * math.sin(angle)

    scene.write(middle_x, 62, "who sends to whom", bold=True)
    sent = messages(kind, n, root)
    crowded = len(sent) > 60
    for message in sent:
        (x0, y0), (x1, y1) = at(message.source), at(message.target)
        length = math.hypot(x1 - x0, y1 - y0)
        along_x, along_y = (x1 - x0) / length, (y1 - y0) / length
        aside = 0 if crowded else 3.5  # two arrows between the same ranks keep to their right
        scene.line(
            x0 + along_x * (disc + 1) - along_y * aside,
            y0 + along_y * (disc + 1) + along_x * aside,
            x1 - along_x * (disc + 1) - along_y * aside,
            y1 - along_y * (disc + 1) + along_x * aside,
            COMMUNICATION.colour,
            0.6 if crowded else 1.8,
            arrow=not crowded,
        )
    for rank in range(n):
        x, y = at(rank)
        scene.box(
            x - disc, y - disc, 2 * disc, 2 * disc, rank_colour(rank), edge=INK if _is_root(kind, rank, root) else FAINT
        )
        scene.write(x, y, f"{rank}", SMALL)
    if cost:
        share = f"{sent[0].share / n:.2f} S" if sent else "nothing"
        scene.write(middle_x, _UNDER_GRID, f"along each arrow: {share}", SMALL)


def _is_root(kind: str, rank: int, root: int) -> bool:
    return kind in ("broadcast", "reduce", "scatter", "gather", "send") and rank == root


def _draw_bars(scene: Scene, shares: list[float], total_bytes: float, left: float, verb: str, hatched: bool) -> None:
    """One bar a rank on a scale that is the same for every collective: 2 S fill it."""
    n, most = len(shares), max(shares)
    pitch = _BAR_WIDTH / n
    how_much = f"{'' if min(shares) == most else 'at most '}{format_bytes(most * total_bytes)}"
    scene.write(left, 290, f"{verb} by each rank: {how_much}", align="left", bold=True)
    scene.line(left, _BAR_FOOT, left + _BAR_WIDTH, _BAR_FOOT, INK)
    for level in (0, 1, 2):
        y = _BAR_FOOT - level * _PIXELS_PER_S
        scene.line(left, y, left + 5, y, INK)
        scene.write(left - 6, y, f"{level} S" if level else "0", SMALL, align="right")
    for rank, share in enumerate(shares):
        x, top = left + (rank + 0.5) * pitch, _BAR_FOOT - share * _PIXELS_PER_S
        width = min(0.62 * pitch, 34)
        if share:
            scene.box(
                x - width / 2,
                top,
                width,
                _BAR_FOOT - top,
                COMMUNICATION.colour if not hatched else PAPER,
                COMMUNICATION.colour,
                hatched,
            )
        text = f"{share:.2f} S" if n <= 6 else f"{share:.2f}"
        scene.write(x, top - 3, text if share else "0", SMALL, rise="bottom", upright=n > 8 and bool(share))
        scene.write(x, _BAR_FOOT + 12, f"rank {rank}" if n <= 6 else f"{rank}", SMALL)
    if n > 6:
        scene.write(left - 6, _BAR_FOOT + 14, "rank", SMALL, align="right")
