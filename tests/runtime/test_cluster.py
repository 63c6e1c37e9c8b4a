"""Ranks on nodes: what crosses a link is counted and paced, what stays inside a node is neither."""

import contextlib
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.distributed as dist

from tests.runtime.namespaces import needs_namespaces
from utils import Cluster, launch
from utils.runtime import kernel_link, link_helper
from utils.runtime.kernel_link import KernelLinks, LinkBytes
from utils.theory.traffic import collective_bytes

pytestmark = needs_namespaces

S = 16 * 2**20


def all_reduce(rank, size=S):
    dist.all_reduce(torch.ones(size // 4))
    return os.readlink("/proc/self/ns/net")


def timed(rank, size, rounds=3):
    """Seconds of each of some all-reduces."""
    x, seconds = torch.ones(size // 4), []
    dist.all_reduce(torch.ones(1))  # opens the connections
    for _ in range(rounds):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(x)
        seconds.append(time.perf_counter() - start)
    return seconds


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(2, 1), (3, 1), (4, 1), (2, 2)])
def test_a_link_carries_what_the_ring_says(nodes, ranks_per_node):
    """In a ring of ranks in order one edge leaves each node, so its link carries what one rank sends."""
    ranks = nodes * ranks_per_node
    run = launch(all_reduce, ranks, cluster=Cluster(nodes, ranks_per_node, "5gbit"))
    law = collective_bytes("all_reduce", S, ranks)
    assert len(run.link_bytes) == nodes
    for link in run.link_bytes:
        assert link.sent == pytest.approx(law, rel=0.01)
        assert link.received == pytest.approx(law, rel=0.01)
    for wire in run.wire_bytes:  # the sockets' counters go on counting, the traffic inside the node too
        assert wire.sent == pytest.approx(law, rel=0.01)
    by_node = [run.values[node * ranks_per_node : (node + 1) * ranks_per_node] for node in range(nodes)]
    assert all(len(set(spaces)) == 1 for spaces in by_node)
    assert len(set(run.values) | {os.readlink("/proc/self/ns/net")}) == nodes + 1


def congestion_controls(rank):
    """Of this rank's connections to other nodes."""
    dist.all_reduce(torch.ones(1))
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as each:
            if each.family == socket.AF_INET and each.getpeername()[0].startswith("10.77."):
                found.add(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode())
    return found


def test_all_nodes_use_linuxs_usual_congestion_control_whatever_the_hosts_is():
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as file:
        if link_helper.CONGESTION_CONTROL not in file.read().split():
            pytest.skip("this kernel has no cubic")
    run = launch(congestion_controls, 2, cluster=Cluster(2, 1, "1gbit"))
    assert run.values == ({link_helper.CONGESTION_CONTROL},) * 2


def test_inside_a_node_nothing_is_paced_or_counted():
    run = launch(timed, 2, S, 1, cluster=Cluster(1, 2, "10mbit"))
    assert run.values[0][0] < S / 1.25e6 / 10  # over the link: 13 s
    assert run.link_bytes == (LinkBytes(0, 0),)


def test_a_link_has_the_speed_that_was_asked_for():
    """Six megabytes at 200 Mbit/s. The narrow bound, 2%, is measured by benchmarks/links.py."""
    cluster, size = Cluster(2, 1, "200mbit"), 6 * 10**6
    run = launch(timed, 2, size, cluster=cluster)
    took = sorted(run.values[0])[1]
    never_faster = (size - kernel_link.burst_bytes(cluster.bits_per_second)) / cluster.goodput
    assert 0.99 * never_faster < took < 1.1 * size / cluster.goodput


def test_headers_are_the_difference_between_link_and_wire():
    run = launch(all_reduce, 2, cluster=Cluster(2, 1))
    assert 1 < run.link_bytes[0].sent / run.wire_bytes[0].sent < 1.008
    assert run.link_bytes[0].sent == run.link_bytes[1].received


def test_a_run_that_communicates_nothing_has_empty_links():
    run = launch(lambda rank: rank, 2, cluster=Cluster(2, 1))
    assert all(link.sent < 1000 for link in run.link_bytes)  # an acknowledgement or two
    assert launch(lambda rank: rank, 2).link_bytes is None


def test_link_counters_are_read_at_their_source(monkeypatch):
    read = KernelLinks.counters
    monkeypatch.setattr(
        KernelLinks,
        "counters",
        lambda self: tuple(LinkBytes(round(1.1 * c.sent), round(1.1 * c.received)) for c in read(self)),
    )
    run = launch(all_reduce, 2, cluster=Cluster(2, 1, "5gbit"))
    assert run.link_bytes[0].sent / S == pytest.approx(1.1, rel=0.01)


def test_ranks_know_their_node_as_torchrun_tells_it():
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
    run = launch(lambda rank: tuple(int(os.environ[name]) for name in names), 4, cluster=Cluster(2, 2))
    assert run.values == ((0, 0, 4, 2, 0), (1, 1, 4, 2, 0), (2, 0, 4, 2, 1), (3, 1, 4, 2, 1))
    alone = launch(lambda rank: tuple(int(os.environ[name]) for name in names), 2)
    assert alone.values == ((0, 0, 2, 2, 0), (1, 1, 2, 2, 0))


def test_two_clusters_at_the_same_time_do_not_meet():
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(launch, all_reduce, n, n * S, cluster=Cluster(n, 1, "5gbit")) for n in (2, 3)]
        two, three = (run.result() for run in runs)
    assert [link.sent / S for link in two.link_bytes] == pytest.approx([2.0] * 2, rel=0.01)
    assert [link.sent / S for link in three.link_bytes] == pytest.approx([4.0] * 3, rel=0.01)
    assert not set(two.values) & set(three.values)


def test_the_bytes_of_the_links_are_shown():
    run = launch(all_reduce, 2, cluster=Cluster(2, 1, "5gbit"))
    assert f"<td>{run.link_bytes[1].received:,}</td>" in run._repr_html_()
    assert "headers included" in run._repr_html_()


@pytest.mark.long
def test_spawned_ranks_join_their_nodes_too():
    run = launch(all_reduce, 2, cluster=Cluster(2, 1, "5gbit"), start="spawn")
    assert [link.sent / S for link in run.link_bytes] == pytest.approx([1, 1], rel=0.01)
