"""The pictures say what the laws say, in words and in blocks, and stay readable from 2 to 16 ranks."""

import re
from itertools import product

import pytest

from utils.theory.collectives import holdings
from utils.theory.traffic import traffic_by_rank
from utils.theory.units import MiB
from utils.views.collectives import (
    HEIGHT,
    HEIGHT_WITHOUT_COST,
    KINDS,
    collective_picture,
    collective_scene,
    collective_words,
)
from utils.views.figure import WIDTH
from utils.views.palette import paler, rank_colour
from utils.views.png import size

S = 64 * MiB


@pytest.mark.parametrize("kind, n", list(product(KINDS, (2, 3, 4, 5, 6, 8, 9, 16))))
def test_words_do_not_overlap_or_leave_the_picture(readable, kind, n):
    for root, total in ((0, S), (n - 1, 1023 * MiB + 1)):
        readable(collective_scene(kind, n, total, root), WIDTH, HEIGHT)
    readable(collective_scene(kind, n, cost=False), WIDTH, HEIGHT_WITHOUT_COST)


def shares_in(alt, verb, n):
    """By rank, in S, what the alternative text says after "Sent:" or "Received:"."""
    said = re.search(rf"{verb}: (.*?)\.(?= Received|$)", alt)[1]
    if said.startswith("every rank"):
        return [float(said.split()[2])] * n
    shares = []
    for part in re.findall(r"ranks? [^,]*", said):
        ranks = [int(number) for number in re.findall(r"rank (\d+)|(\d+) to (\d+)", part)[0] if number]
        value = 0.0 if part.endswith("nothing") else float(re.search(r"([\d.]+) S", part)[1])
        shares += [value] * (ranks[-1] - ranks[0] + 1)
    return shares


@pytest.mark.parametrize("kind, n", list(product(KINDS, (2, 4, 16))))
def test_the_alternative_text_gives_the_laws_numbers(kind, n):
    for root in (0, n - 1):
        alt = collective_words(kind, n, S, root)
        law = traffic_by_rank(kind, S, n, root)
        assert shares_in(alt, "Sent", n) == pytest.approx([rank.sent / S for rank in law], abs=0.005)
        assert shares_in(alt, "Received", n) == pytest.approx([rank.received / S for rank in law], abs=0.005)
        assert f"{n} ranks" in alt and "S = 64 MiB" in alt


def grids(kind, n, root=0):
    """The boxes of the grid before and of the grid after."""
    boxes = [box for box in collective_scene(kind, n, S, root).boxes if 92 <= box.y < 252 and box.height != 18]
    return [b for b in boxes if b.x < 326], [b for b in boxes if b.x >= 568]


@pytest.mark.parametrize("kind", KINDS)
def test_the_blocks_have_the_colours_of_their_origins(kind):
    n, root = 4, 1
    pale = {paler(rank_colour(rank), 0.25): rank for rank in range(n)}
    for drawn, held in zip(grids(kind, n, root), holdings(kind, n, root), strict=True):
        drawn = [box for box in drawn if box.fill not in pale]
        expected = {rank_colour(origin) for rank in held for block in rank if block for origin in block.origins}
        assert {box.fill for box in drawn} == expected
        area = sum(box.width * box.height for box in drawn)
        cells = sum(block is not None for rank in held for block in rank)
        assert area == pytest.approx(256 * 160 * cells / (n * len(held[0])))


def test_buffers_that_are_overwritten_or_take_no_part_are_pale():
    """The lesson prints their numbers, so they are not empty."""

    def pale_ranks(boxes):
        return [rank for rank in range(4) if paler(rank_colour(rank), 0.25) in {box.fill for box in boxes}]

    assert [pale_ranks(boxes) for boxes in grids("broadcast", 4)] == [[1, 2, 3], []]
    assert [pale_ranks(boxes) for boxes in grids("send", 4)] == [[1, 2, 3], [2, 3]]
    assert [pale_ranks(boxes) for boxes in grids("all_gather", 4)] == [[], []]


@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter", "reduce"])
def test_a_sum_of_many_ranks_is_one_hatched_block(kind):
    _, after = grids(kind, 16)
    hatched = [box for box in after if box.hatched]
    assert hatched and all(box.width == 16 for box in hatched)
    assert "hatched: sum of all 16 ranks" in "".join(word.text for word in collective_scene(kind, 16, S).words)


@pytest.mark.parametrize("kind", KINDS)
def test_without_cost_nothing_tells_what_is_sent(kind):
    scene = collective_scene(kind, 4, cost=False)
    said = " ".join([collective_words(kind, 4, cost=False), *(word.text for word in scene.words)])
    assert not re.search(r"\bS\b|MiB|Sent|Received|along each arrow", said), said
    assert "on 4 ranks: afterwards" in said and "ends to" in said
    assert size(collective_picture(kind, 4, cost=False).image_bytes()) == (WIDTH, HEIGHT_WITHOUT_COST)


def test_the_picture_is_a_small_png_of_fixed_size():
    for kind, n in (("all_reduce", 4), ("all_to_all", 8)):
        png = collective_picture(kind, n, S).image_bytes()
        assert size(png) == (WIDTH, HEIGHT)
        assert len(png) < 60_000


def test_an_empty_message_still_has_shares():
    assert "every rank 1.50 S (0 B)" in collective_words("all_reduce", 4, 0)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="did you mean 'all_gather'"):
        collective_picture("allgather", 4, S)
    with pytest.raises(ValueError, match="at most 16 ranks"):
        collective_picture("all_gather", 17, S)
    with pytest.raises(ValueError, match="kind is 'barrier'"):
        collective_picture("barrier", 4, S)
    with pytest.raises(ValueError, match="total_bytes is -1"):
        collective_picture("all_gather", 4, -1)
    with pytest.raises(ValueError, match="total_bytes is None; give the size in bytes"):
        collective_picture("all_gather", 4)
