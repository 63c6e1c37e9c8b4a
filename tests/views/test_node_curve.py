"""The curve over nodes: what each strategy tends to, and what was measured on few nodes beside it."""

import pytest

from utils.views.figure import WIDTH
from utils.views.node_curve import (
    HEIGHT,
    LIMITS,
    NODES,
    STRATEGIES,
    across_in_S,
    node_curve_picture,
    node_curve_scene,
    node_curve_words,
)
from utils.views.palette import COMMUNICATION

MEASURED = {"DDP": 1.5, "FSDP": 2.25, "HSDP": 1.0}


@pytest.mark.parametrize("ranks_per_node", [1, 2, 4, 8])
@pytest.mark.parametrize("measured", [MEASURED, {}, {**MEASURED, "FSDP": 3.0}])
def test_nothing_overlaps_or_leaves_the_picture(readable, measured, ranks_per_node):
    if ranks_per_node > 1:  # with one rank on a node DDP and HSDP are the same line
        readable(node_curve_scene(measured, (2, 2), ranks_per_node), WIDTH, HEIGHT)


def test_the_laws_of_the_curve():
    for nodes in NODES:
        assert across_in_S("ddp", nodes, 8) == pytest.approx(2 * (8 * nodes - 1) / (8 * nodes))
        assert across_in_S("fsdp", nodes, 8) == pytest.approx(3 * (8 * nodes - 1) / (8 * nodes))
        assert across_in_S("hsdp", nodes, 8) == pytest.approx(2 * (nodes - 1) / nodes)
    for name, strategy in STRATEGIES.items():
        assert across_in_S(strategy, 10_000, 8) == pytest.approx(LIMITS[name], rel=1e-3)


def test_dots_stand_at_what_was_measured():
    def dots(measured):
        scene = node_curve_scene(measured, (2, 2), 8)
        return sorted(b.y for b in scene.boxes if b.fill == COMMUNICATION.colour and b.x == 150 - 24 - 4.5)

    assert len(dots(MEASURED)) == 3 and len(dots({**MEASURED, "FSDP": None})) == 2
    assert dots({**MEASURED, "FSDP": 3.0})[0] < dots(MEASURED)[0]


def test_the_words_tell_all():
    words = node_curve_words({"DDP": 1.505, "FSDP": 3.01, "HSDP": None}, (2, 2), 8)
    assert "FSDP: 2.81 S on 2 nodes, 3.00 S on 128; on 2 x 2 predicted 2.25 S, measured 3.01 S." in words
    assert "DDP: 1.88 S on 2 nodes, 2.00 S on 128; on 2 x 2 predicted 1.50 S, measured the same." in words
    assert words.endswith("predicted 1.00 S, not measurable here.")
    assert node_curve_picture(MEASURED).alt.startswith("What a node of 8 sends across in a step.")


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="measured has 'ZeRO'; the names are FSDP, DDP, HSDP"):
        node_curve_picture({"ZeRO": 1})
    with pytest.raises(ValueError, match="measured of DDP is -1"):
        node_curve_picture({"DDP": -1})
    with pytest.raises(ValueError, match="nodes is 0"):
        across_in_S("ddp", 0, 8)
