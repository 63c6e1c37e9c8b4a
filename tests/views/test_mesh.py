"""The mesh's picture: who shares a copy, who holds the same part, and what leaves a node."""

import pytest

from utils.views.figure import WIDTH
from utils.views.mesh import groups, mesh_height, mesh_picture, mesh_scene, mesh_words
from utils.views.png import size

SHAPES = [(nodes, on_node) for nodes in (1, 2, 3, 4) for on_node in range(1, 9)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_nothing_overlaps_or_leaves_the_picture(readable, nodes, ranks_per_node, transposed):
    readable(mesh_scene(nodes, ranks_per_node, transposed), WIDTH, mesh_height(nodes))


def test_groups_are_rows_and_columns():
    assert groups(2, 2) == ([[0, 1], [2, 3]], [[0, 2], [1, 3]])
    assert groups(2, 4, transposed=True) == ([[0, 4], [1, 5], [2, 6], [3, 7]], [[0, 1, 2, 3], [4, 5, 6, 7]])


def test_every_rank_says_its_part():
    texts = [word.text for word in mesh_scene(2, 2).words]
    assert [texts.count(f"part {part}/2") for part in (0, 1)] == [2, 2]
    assert {f"rank {rank}" for rank in range(4)} <= set(texts)


def test_what_leaves_a_node_is_thick():
    for transposed in (False, True):
        lines = mesh_scene(3, 2, transposed).lines
        assert {line.width for line in lines if line.y0 == line.y1} == {1.6}
        assert [line.width for line in lines if line.x0 == line.x1] == [5.0] * 4


def test_the_words_tell_all():
    assert mesh_words(2, 2) == (
        "HSDP: a mesh of 2 x 2, replicate x shard. 2 nodes of 2 ranks. Shard groups, inside a node: (0, 1), (2, 3). "
        "Replica groups, across nodes: (0, 2), (1, 3)."
    )
    assert "Shard groups, across nodes: (0, 2), (1, 3)" in mesh_words(2, 2, transposed=True)
    assert size(mesh_picture().image_bytes()) == (WIDTH, mesh_height(2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 2), "nodes is 5; .* at most 4"),
        ((2, 9), "ranks_per_node is 9; .* at most 8"),
        ((0, 2), "nodes is 0; it is how many nodes"),
        ((2, 2, "yes"), "transposed is 'yes'; it is yes or no"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        mesh_picture(*arguments)
