"""NCCL's latency model against its formula worked by hand, and against measured small messages."""

import pytest

from utils.theory.nccl import nccl_latency
from utils.theory.sweeps import sweep
from utils.theory.units import KiB


@pytest.mark.parametrize(
    ("arguments", "microseconds"),
    [
        (("all_reduce", 8), 8.4 + 14 * 3.4),
        (("all_reduce", 16, 2), 8.4 + 28 * 3.4 + 2 * 14),
        (("all_gather", 16, 2, "ring", "LL"), 6.6 + 14 * 1.0 + 2.7),  # no step is shorter than the overhead
        (("reduce_scatter", 4, 4, "ring", "LL128"), 14 + 3 * 8.5),  # one rank a node: the tree's step
        (("all_reduce", 16, 2, "ring", "Simple", "NVLink", 5e-6, 2e-6), 8.4 + 28 * 6 + 2 * (14 + 10)),
        (("all_reduce", 16, 2, "tree", "LL", "NVLink", 5e-6), 6.8 + 2 * (7 * 0.6 + 10)),
        (("all_reduce", 64, 8, "tree", "LL128"), 14 + 2 * (7 * 1.25 + 3 * 8.5)),
        (("all_reduce", 8, 1, "ring", "Simple", "PCIe"), 8.4 + 14 * 5.7),
        (("all_reduce", 1), 0),
    ],
)
def test_worked_by_hand(arguments, microseconds):
    assert nccl_latency(*arguments) == pytest.approx(microseconds / 1e6)


def test_twice_the_nodes_double_a_ring_and_add_two_steps_to_a_tree():
    for nodes in (8, 64, 512):
        ring, twice = (nccl_latency("all_reduce", 8 * n, n, "ring", "LL") for n in (nodes, 2 * nodes))
        assert 1.9 < twice / ring < 2
        tree, deeper = (nccl_latency("all_reduce", 8 * n, n, "tree", "LL") for n in (nodes, 2 * nodes))
        assert deeper - tree == pytest.approx(2 * 5e-6) and tree < ring / 2


def test_small_messages_as_measured_inside_a_node_and_not_over_efa():
    inside = sweep("8 H100, NVLink 4 with NVLS").seconds(16 * KiB)
    assert 0.8 < nccl_latency("all_reduce", 8, protocol="LL") / inside < 1
    across = sweep("2 x 8 H100, EFA v2").seconds(32 * KiB)
    assert nccl_latency("all_reduce", 16, 2, protocol="LL") < across / 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("broadcast", 8), "kind is 'broadcast'"),
        (("all_gather", 8, 1, "tree"), "kind is 'all_gather', which is not known here"),
        (("all_reduce", 0), "world_size is 0"),
        (("all_reduce", 8, 3), "nodes is 3"),
        (("all_reduce", 8, 1, "NVLS"), "algorithm is 'NVLS'"),
        (("all_reduce", 8, 1, "ring", "simple"), "protocol is 'simple'"),
        (("all_reduce", 8, 1, "ring", "LL", None), "inside is None"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments, says):
    with pytest.raises(ValueError, match=says):
        nccl_latency(*arguments)
