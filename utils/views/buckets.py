"""Which gradients share a bucket: the buckets in the order in which backward fills them, and the cap they reach."""

from __future__ import annotations

from collections.abc import Sequence

from utils.theory.arguments import check_whole
from utils.theory.buckets import bucket_bytes
from utils.theory.units import format_bytes
from utils.views.board import Board, Scene, Words, extent
from utils.views.figure import WIDTH, Picture
from utils.views.palette import GRADIENTS, INK, PAPER, SMALL, TITLE, ink_on, paler

MOST_BUCKETS = 16

_LEFT, _TOP, _ROW, _BAR = 84, 74, 30, 22
_SAID = 150  # pixels on the right for the sizes


def bucket_picture(
    tensor_bytes: Sequence[int],
    buckets: Sequence[Sequence[int]],
    names: Sequence[str],
    cap: int,
    title: str = "Buckets in the order in which backward fills them",
) -> Picture:
    """One row for each bucket, its gradients as boxes from left to right, and a line at `cap` bytes.

    tensor_bytes, names: of the gradients, in the order in which backward finishes them. buckets: positions among them,
    as `theory.buckets.ddp_buckets` lays them. Raises ValueError for no buckets, more than can be drawn, or other
    positions.
    """
    scene, height = bucket_scene(tensor_bytes, buckets, names, cap, title)
    board = Board(height, WIDTH)
    board.show(scene)
    return Picture(board.figure, bucket_words(tensor_bytes, buckets, names, cap, title))


def bucket_scene(
    tensor_bytes: Sequence[int], buckets: Sequence[Sequence[int]], names: Sequence[str], cap: int, title: str
) -> tuple[Scene, int]:
    """(the scene that `bucket_picture` shows, its height in pixels); errors as there."""
    sizes = _checked(tensor_bytes, buckets, names, cap)
    scale = (WIDTH - _LEFT - _SAID) / max(*sizes, cap)
    scene = Scene()
    scene.write(8, 18, title, TITLE, align="left", bold=True)
    foot = _TOP + len(buckets) * _ROW
    for number, bucket in enumerate(buckets):
        top, x = _TOP + number * _ROW, float(_LEFT)
        scene.write(_LEFT - 8, top + _BAR / 2, f"bucket {number}", SMALL, align="right")
        for place, i in enumerate(bucket):
            width = tensor_bytes[i] * scale
            colour = GRADIENTS.colour if place % 2 == 0 else paler(GRADIENTS.colour, 0.6)
            scene.box(x, top, width, _BAR, colour, edge=PAPER if width > 3 else "none")
            _write_inside(scene, names[i], x, width, top + _BAR / 2, colour)
            x += width
        said = format_bytes(sizes[number]) + ("" if sizes[number] >= cap else ", what is left")
        scene.write(WIDTH - _SAID + 8, top + _BAR / 2, said, SMALL, align="left")
    at = _LEFT + cap * scale
    scene.line(at, _TOP - 10, at, foot, INK, 2)
    right = at > WIDTH / 2
    scene.write(
        at + (2 if right else -2), _TOP - 22, f"cap, {format_bytes(cap)}", SMALL, align="right" if right else "left"
    )
    return scene, foot + 12


def bucket_words(
    tensor_bytes: Sequence[int], buckets: Sequence[Sequence[int]], names: Sequence[str], cap: int, title: str
) -> str:
    """The picture in words: its text alternative."""
    sizes = _checked(tensor_bytes, buckets, names, cap)
    said = "; ".join(
        f"bucket {number}: {', '.join(names[i] for i in bucket)}, {format_bytes(size)}"
        for number, (bucket, size) in enumerate(zip(buckets, sizes, strict=True))
    )
    return f"{title}. A bucket closes when it reaches {format_bytes(cap)}. {said}."


def _checked(
    tensor_bytes: Sequence[int], buckets: Sequence[Sequence[int]], names: Sequence[str], cap: int
) -> tuple[int, ...]:
    check_whole("cap", cap, "the size in bytes at which a bucket closes")
    if not 1 <= len(buckets) <= MOST_BUCKETS:
        raise ValueError(f"there are {len(buckets)} buckets; 1 to {MOST_BUCKETS} can be drawn")
    if len(names) != len(tensor_bytes):
        raise ValueError(f"there are {len(names)} names for {len(tensor_bytes)} gradients; give each its name")
    return bucket_bytes(buckets, tensor_bytes)


def _write_inside(scene: Scene, text: str, left: float, width: float, y: float, colour: str) -> None:
    word = Words(left + width / 2, y, text, SMALL, colour=ink_on(colour))
    ink_left, _, ink_right, _ = extent(word)
    if ink_right - ink_left <= width - 6:
        scene.words.append(word)
