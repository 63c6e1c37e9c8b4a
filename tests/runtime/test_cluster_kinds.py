"""What a cluster is, before any rank is started: its numbers, its kind and why, and what it refuses."""

import json
import os

import numpy as np
import pytest

from utils import Cluster, doctor, launch
from utils.runtime import kernel_link, link_helper
from utils.runtime.cluster import Links
from utils.runtime.errors import LaunchError


def rank_only(rank):
    return rank


@pytest.fixture
def without_namespaces(monkeypatch):
    """A system that does not permit them."""
    monkeypatch.delenv("CLUSTER_KIND", raising=False)
    monkeypatch.setattr(kernel_link, "_trial", lambda latency: "making a user namespace was refused (reason)")


@pytest.fixture
def with_namespaces(monkeypatch):
    """A system that permits them but has no module netem."""
    monkeypatch.delenv("CLUSTER_KIND", raising=False)
    monkeypatch.setattr(kernel_link, "_trial", lambda latency: "`tc` refused" if latency else "")


@pytest.mark.parametrize(
    ("link", "speed"),
    [
        ("1gbit", 1e9),
        ("200mbit", 2e8),
        ("1.5gbit", 1.5e9),
        (" 1.5 Gbit/s ", 1.5e9),
        ("5000kbit", 5e6),
        (1e9, 1e9),
        (10**9, 1e9),
        (np.int32(2_000_000), 2e6),
        ("20gbit", 20e9),
        ("1mbit", 1e6),
    ],
)
def test_a_link_has_a_speed(link, speed):
    cluster = Cluster(2, 1, link)
    assert cluster.bits_per_second == pytest.approx(speed, rel=1e-12)
    assert cluster.goodput == cluster.bits_per_second / 8


@pytest.mark.parametrize(
    ("latency", "seconds"),
    [(None, 0), (0, 0), ("5ms", 0.005), ("200us", 2e-4), (0.01, 0.01), ("0.5 s", 0.5), (1, 1.0)],
)
def test_a_link_has_a_latency(latency, seconds):
    assert Cluster(2, 1, latency=latency).latency == pytest.approx(seconds)


LINK = "give a speed from 1 Mbit/s to 20 Gbit/s, such as '200mbit' or '1.5gbit', or a number of bits per second"
LATENCY = "give a time from 0 to 1 s, such as '5ms', '200us', or a number of seconds"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        *[({"link": bad}, f"link is {bad!r}; {LINK}") for bad in ("fast", "1GB", "1", "", "0gbit", "21gbit", "-1gbit")],
        *[({"link": bad}, LINK) for bad in (1, 0, -1e9, 21e9, float("nan"), float("inf"), True, None, [1e9], 1j)],
        ({"link": 10**400}, "link is a number too large for a float"),
        *[({"latency": bad}, f"latency is {bad!r}; {LATENCY}") for bad in ("5", "soon", -0.1, 2, True, "2s")],
        *[({"latency": bad}, LATENCY) for bad in (float("nan"), float("inf"), [1])],
        *[
            ({name: bad}, f"{name} is {bad!r}; give a whole number from 1 to 64")
            for name in ("nodes", "ranks_per_node")
            for bad in (0, -1, 2.0, "2", True, None, 65, float("nan"))
        ],
        ({"nodes": 9, "ranks_per_node": 8}, "the cluster has 9 nodes of 8, which makes 72 ranks; at most 64"),
        ({"kind": "kernel"}, "kind is 'kernel'; it can be 'auto' or 'emulated'"),
        ({"kind": None}, "kind is None"),
    ],
)
def test_bad_clusters_are_refused_in_one_sentence(arguments, says):
    with pytest.raises(ValueError) as caught:
        Cluster(**{"nodes": 2, "ranks_per_node": 1, **arguments})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "options", "says"),
    [
        (Cluster(2, 2), {}, "the cluster has 2 nodes of 2, launch was asked for 3 ranks: launch 4, or make a cluster"),
        ("2x2", {}, "cluster is '2x2'; give a Cluster, such as Cluster(nodes=2, ranks_per_node=2)"),
        (Cluster(3, 1), {"backend": "mpi"}, "backend is 'mpi'; it can be 'auto', 'gloo', 'nccl'"),
        (Cluster(3, 1), {"backend": "nccl"}, "backend is 'nccl', whose GPUs do not talk over a cluster's links"),
    ],
)
def test_clusters_that_do_not_fit_the_launch(cluster, options, says):
    with pytest.raises((ValueError, TypeError)) as caught:
        launch(rank_only, 3, cluster=cluster, **options)
    assert says in str(caught.value)


def test_where_the_kernel_permits_it_links_are_the_kernels(with_namespaces):
    assert Cluster(2, 1).kind == "kernel"
    assert Cluster(2, 1).why.startswith("The links are the Linux kernel's own")
    assert Cluster(2, 1).links() == Links(2, 1, 1e9, 0.0, "kernel", "")


def test_where_it_does_not_they_are_emulated_and_it_says_why(without_namespaces):
    cluster = Cluster(2, 1, latency="5ms")
    assert cluster.kind == "emulated"
    assert cluster.why.startswith("The links are emulated, for making a user namespace was refused (reason): ")
    assert cluster.why.count(".") == 1 and "one after the other, by the ring's rules" in cluster.why
    assert cluster.latency_by == "recorder"
    assert cluster.links().emulated == "emulated link"


def test_emulation_can_be_asked_for(with_namespaces, monkeypatch):
    assert Cluster(2, 1, kind="emulated").kind == "emulated"
    assert "kind='emulated'" in Cluster(2, 1, kind="emulated").why
    monkeypatch.setenv("CLUSTER_KIND", "emulated")
    assert Cluster(2, 1).kind == "emulated"
    assert "CLUSTER_KIND=emulated" in Cluster(2, 1).why
    monkeypatch.setenv("CLUSTER_KIND", "real")
    with pytest.raises(ValueError, match="CLUSTER_KIND is 'real'; set it to 'auto' or 'emulated', or unset it"):
        _ = Cluster(2, 1).kind


def test_who_delays_is_told(with_namespaces, monkeypatch):
    assert Cluster(2, 1).latency_by == ""
    assert Cluster(2, 1).links().emulated == ""
    assert Cluster(2, 1, latency=0.01).latency_by == "recorder"
    assert Cluster(2, 1, latency=0.01).links().emulated == "emulated latency"
    monkeypatch.setattr(kernel_link, "_trial", lambda latency: "")
    assert Cluster(2, 1, latency=0.01).latency_by == "kernel"
    assert kernel_link.shape(1e9, 0.005)[1] == "parent 1:1 netem delay 5000us limit 1000000"
    assert len(kernel_link.shape(1e9)) == 1


def test_a_helper_that_fails_is_quoted(tmp_path, monkeypatch):
    helper = tmp_path / "helper.py"
    monkeypatch.setattr(kernel_link, "HELPER", helper)
    for code, says in (
        (f"print({json.dumps(json.dumps({'error': '`tc` refused: no tbf'}))})", "`tc` refused: no tbf"),
        ("raise SystemExit('cannot even start')", "its helper ended (cannot even start)"),
        ("", "its helper ended (exit status 0)"),
    ):
        helper.write_text(code)
        with pytest.raises(OSError, match=r".") as caught:
            kernel_link.KernelLinks(2, 1e9)
        assert str(caught.value) == says


def test_a_tool_that_is_missing_or_refuses_is_named():
    with pytest.raises(OSError, match="the program `no-such-tool` \\(iproute2\\) is not installed"):
        link_helper.tool("no-such-tool", [])


def test_links_that_fail_only_now_are_told(with_namespaces, tmp_path, monkeypatch):
    (tmp_path / "helper.py").write_text("raise SystemExit('out of memory')")
    monkeypatch.setattr(kernel_link, "HELPER", tmp_path / "helper.py")
    with pytest.raises(LaunchError, match="the cluster's links could not be made this time: its helper ended"):
        launch(rank_only, 2, cluster=Cluster(2, 1))


def test_the_doctor_tells_the_kind(monkeypatch):
    monkeypatch.delenv("CLUSTER_KIND", raising=False)
    monkeypatch.setattr(kernel_link, "why_no_kernel_links", lambda: "")
    assert str(doctor.links()) == "ok    links between nodes: the kernel's own"
    monkeypatch.setattr(kernel_link, "why_no_kernel_links", lambda: "this is no Linux")
    assert not doctor.links().fatal
    assert "emulated, for this is no Linux" in str(doctor.links())
    monkeypatch.setattr(kernel_link, "why_no_kernel_links", lambda: "")
    monkeypatch.setenv("CLUSTER_KIND", "emulated")
    assert "emulated, for the environment has CLUSTER_KIND=emulated" in str(doctor.links())
    monkeypatch.setenv("CLUSTER_KIND", "real")
    assert "CLUSTER_KIND is 'real'; set it to" in str(doctor.links())


def test_a_cluster_is_told_in_a_line_and_draws_itself(with_namespaces):
    cluster = Cluster(2, 4, "1.5gbit", "5ms")
    assert repr(cluster) == "Cluster(nodes=2, ranks_per_node=4, links of 1.5 Gbit/s, latency 5 ms)"
    bundle = cluster._repr_mimebundle_()
    assert "image/png" in bundle and bundle["text/plain"].startswith("Cluster of 2 nodes of 4 ranks")


def test_making_a_cluster_starts_nothing(monkeypatch):
    monkeypatch.setattr(os, "fork", None)
    monkeypatch.setattr(kernel_link, "_trial", None)
    Cluster(2, 2, "1gbit", "1ms")
