"""What sockets sent to ranks on other nodes: the same on emulated links as counters of the kernel's would say."""

import sys

import pytest
import torch
import torch.distributed as dist

from utils import Cluster, launch, reduce_scatter_single
from utils.runtime import crossing, wire
from utils.runtime.crossing import bytes_to_other_nodes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no TCP counters on this system")
NUMBERS = 2**18


def reduced(rank, inside):
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    dist.all_reduce(torch.ones(NUMBERS), group=groups[rank // 2] if inside else None)
    return bytes_to_other_nodes()


def test_a_ring_through_two_nodes_crosses_once_for_each():
    cluster = Cluster(2, 2, "5gbit", kind="emulated")
    sent = launch(reduced, 4, False, cluster=cluster).values
    assert [sum(sent[:2]), sum(sent[2:])] == pytest.approx([1.5 * 4 * NUMBERS] * 2, rel=0.02)
    assert all(each < 0.02 * 4 * NUMBERS for each in launch(reduced, 4, True, cluster=cluster).values)


def test_it_agrees_with_the_counters_of_the_links():
    def scattered(rank):
        reduce_scatter_single(torch.empty(NUMBERS), torch.ones(4 * NUMBERS))
        return bytes_to_other_nodes()

    cluster = Cluster(2, 2, "5gbit")
    run = launch(scattered, 4, cluster=cluster, true_reduce_scatter=True)
    assert sum(run.values[:2]) == pytest.approx(0.75 * 16 * NUMBERS, rel=0.02)
    if run.link_bytes is not None:  # headers on top
        assert sum(run.values[:2]) == pytest.approx(run.link_bytes[0].sent, rel=0.02)


def test_without_nodes_nothing_crosses():
    assert launch(reduced, 4, False).values == (0, 0, 0, 0)


def test_where_nothing_is_counted_it_says_so():
    def uncounted(rank):
        crossing.read_counters = lambda: None
        return bytes_to_other_nodes(), wire.read_counters() is None

    assert launch(uncounted, 2).values == ((None, False),) * 2
