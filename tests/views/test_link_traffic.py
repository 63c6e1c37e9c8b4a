"""Traffic by link: as wide as the bytes, measured beside predicted, in words too."""

import pytest

from utils.theory.traffic import step_bytes
from utils.views.figure import WIDTH
from utils.views.link_traffic import link_traffic_picture, link_traffic_scene, link_traffic_words
from utils.views.palette import COMMUNICATION
from utils.views.png import size

S = 64e6


def steps(nodes=2, on_node=2):
    return {
        name: step_bytes(S / 4, name.lower(), nodes * on_node, on_node if name == "HSDP" else None, nodes, 4)
        for name in ("DDP", "FSDP", "HSDP")
    }


def links(scene):
    """(widths of the links between nodes, of those inside)."""
    drawn = [box for box in scene.boxes if box.fill == COMMUNICATION.colour]
    return [b.width for b in drawn if b.height == 62], [b.height for b in drawn if b.height != 62]


@pytest.mark.parametrize(("nodes", "on_node"), [(1, 2), (2, 1), (2, 2), (2, 4), (4, 2), (4, 4), (2, 8), (3, 5)])
def test_nothing_overlaps_or_leaves_the_picture(readable, nodes, on_node):
    predicted = steps(nodes, on_node)
    for measured in ({}, {"HSDP": [predicted["HSDP"].across] * nodes}):
        scene = link_traffic_scene(predicted, S, measured, "Bytes of a step on each link")
        readable(scene, WIDTH, size(link_traffic_picture(predicted, S, measured).image_bytes())[1])


def test_links_are_as_wide_as_their_bytes():
    between, inside = links(link_traffic_scene(steps(), S, {}, ""))
    assert between == pytest.approx([22 * part / 2.25 for part in (1.5, 1.5, 2.25, 2.25, 1.0, 1.0)])
    assert inside == pytest.approx([22 * part / 2.25 for part in (1.5, 1.5, 2.25, 2.25, 1.5, 1.5)])


def test_measured_bytes_are_told_and_bold_where_they_differ():
    predicted = steps()
    measured = {"DDP": [1.501 * S, 1.5 * S], "FSDP": [2.25 * S, 3.01 * S], "HSDP": None}
    scene = link_traffic_scene(predicted, S, measured, "")
    said = {word.text: word.bold for word in scene.words if word.text.startswith("measured")}
    assert said == {"measured 1.50 S": False, "measured 2.25 S": True, "measured 3.01 S": True}
    words = link_traffic_words(predicted, S, measured, "Bytes")
    assert words.startswith("Bytes, 2 nodes of 2 ranks, S = 61.04 MiB. DDP: each node sends 1.50 S inside and 1.50 S")
    assert "measured the same within 0.02 S. FSDP" in words and "measured 2.25 S, 3.01 S. HSDP" in words
    assert words.endswith("HSDP: each node sends 3.00 S inside and 1.00 S across, not measurable here.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, S), "predicted is {}; give 1 to 3 names"),
        ((steps(), 0), "total_bytes is 0"),
        ((steps(8, 2), S), "there are 8 nodes of 2 ranks; at most 4 nodes and 16 ranks"),
        ((steps(), S, {"ZeRO": None}), "measured has 'ZeRO', which predicted has not"),
        ((steps(), S, {"DDP": [1.0]}), "measured has 1 links for 'DDP'; there are 2 nodes"),
        (({**steps(), "HSDP": steps(4)["HSDP"]}, S), "draw the same nodes in all panels"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        link_traffic_picture(*arguments)
