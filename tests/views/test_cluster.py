"""A cluster's picture: nodes, ranks, links; its words are the same whatever kind the links are."""

from types import SimpleNamespace

import pytest

from utils.views.board import extent
from utils.views.cluster import cluster_picture, cluster_scene, cluster_words
from utils.views.figure import WIDTH
from utils.views.palette import rank_colour
from utils.views.png import size


def cluster(nodes=2, ranks_per_node=2, bits_per_second=1e9, latency=0.0, kind="kernel"):
    return SimpleNamespace(
        nodes=nodes, ranks_per_node=ranks_per_node, bits_per_second=bits_per_second, latency=latency, kind=kind
    )


SHAPES = [(n, r) for n in range(1, 9) for r in range(1, 9)] + [(9, 7), (16, 4), (64, 1), (1, 64), (2, 32)]


@pytest.mark.parametrize(("bits_per_second", "latency"), [(1e9, 0.0), (1.2345678e9, 0.0123456)])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_nothing_overlaps_or_leaves_the_picture(readable, nodes, ranks_per_node, bits_per_second, latency):
    drawn = cluster(nodes, ranks_per_node, bits_per_second, latency, "emulated")
    scene = cluster_scene(drawn)
    height = round(max(box.y + box.height for box in scene.boxes)) + 20
    readable(scene, WIDTH, height)
    for a, b in zip(scene.boxes, scene.boxes[1:], strict=False):  # neighbours: chips, nodes
        inside = a.x <= b.x and a.y <= b.y and b.x + b.width <= a.x + a.width and b.y + b.height <= a.y + a.height
        apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
        assert inside or apart


def test_every_rank_is_there_in_its_colour_on_its_node():
    scene = cluster_scene(cluster(2, 3))
    for rank in range(6):
        number = next(word for word in scene.words if word.text == str(rank))
        chip = next(b for b in scene.boxes if b.width < 50 and b.x < number.x < b.x + b.width and b.y < number.y)
        assert chip.fill == rank_colour(rank)
    assert {w.text for w in scene.words} >= {"node 0", "node 1", "switch", "1 Gbit/s"}


def test_each_link_has_its_speed_and_latency_and_no_line_crosses_them():
    scene = cluster_scene(cluster(4, 1, latency=0.005))
    texts = [word.text for word in scene.words]
    assert texts.count("1 Gbit/s") == texts.count("+ 5 ms") == 4
    for word in (w for w in scene.words if w.text in ("1 Gbit/s", "+ 5 ms")):
        left, top, right, bottom = extent(word)
        crossing = [li for li in scene.lines if left < li.x0 < right and li.y0 < bottom and li.y1 > top]
        assert not crossing


def test_of_many_nodes_seven_are_drawn_and_the_others_counted():
    texts = [word.text for word in cluster_scene(cluster(16, 4)).words]
    assert sum(text.startswith("node ") for text in texts) == 7
    assert "9 more" in texts


def test_emulated_links_are_told_in_the_title_alone():
    kernel, emulated = cluster(), cluster(kind="emulated")
    titles = [cluster_scene(c).words[0].text for c in (kernel, emulated, cluster(1, 2, kind="emulated"))]
    assert titles == [
        "Cluster: 2 nodes of 2 ranks",
        "Cluster: 2 nodes of 2 ranks, emulated links",
        "Cluster: 1 node of 2 ranks, emulated link",
    ]
    assert cluster_words(kernel) == cluster_words(emulated)


def test_the_words_tell_all():
    assert cluster_words(cluster(2, 4, 1.5e9, 0.005)) == (
        "Cluster of 2 nodes of 4 ranks: ranks 0 to 7, 4 a node in order. Each link: 1.5 Gbit/s each way, latency 5 ms."
    )
    alone = "Cluster of 1 node of 1 rank: rank 0. The link: 1 Gbit/s each way."
    assert cluster_words(cluster(1, 1), "Mine") == f"Mine. {alone}"


def test_the_picture_has_its_width():
    assert size(cluster_picture(cluster()).image_bytes())[0] == WIDTH
