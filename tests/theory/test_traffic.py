"""The traffic laws against nccl-tests' definitions, against gloo's measured counters, and against conservation."""

import csv
import math
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from utils.theory.traffic import (
    KINDS,
    Traffic,
    algorithm_bandwidth,
    bus_bandwidth,
    collective_bytes,
    gloo_bytes,
    gloo_received_bytes,
    received_bytes,
    traffic_by_rank,
)
from utils.theory.units import MiB

DATA = Path(__file__).parents[1] / "data"
S = 48 * MiB
COLLECTIVES = [kind for kind in KINDS if kind not in ("send", "recv")]


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows("nccl_tests_bus_factors.csv"), ids=lambda row: row["kind"])
def test_the_busiest_rank_carries_the_bus_factor_of_nccl_tests(row):
    for n in (2, 3, 4, 8, 64, 1024):
        factor = {"1": 1.0, "(n-1)/n": (n - 1) / n, "2*(n-1)/n": 2 * (n - 1) / n}[row["bus_factor"]]
        assert collective_bytes(row["kind"], S, n) == pytest.approx(factor * S, rel=1e-15)
        assert received_bytes(row["kind"], S, n) == collective_bytes(row["kind"], S, n)
        assert bus_bandwidth(row["kind"], S, n, 0.5) == pytest.approx(factor * algorithm_bandwidth(S, 0.5), rel=1e-15)


def test_every_kind_with_data_has_a_published_factor():
    assert {row["kind"] for row in rows("nccl_tests_bus_factors.csv")} == set(KINDS) - {"barrier"}


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize("sent, received", [(collective_bytes, received_bytes), (gloo_bytes, gloo_received_bytes)])
def test_what_is_sent_is_received(kind, sent, received):
    for n in (1, 2, 3, 4, 5, 8, 16):
        for root in range(n):
            for size in (0, 1, 1000, n * MiB, 48 * MiB + 12):
                total_sent = math.fsum(sent(kind, size, n, rank, root) for rank in range(n))
                total_received = math.fsum(received(kind, size, n, rank, root) for rank in range(n))
                assert total_sent == pytest.approx(total_received, rel=1e-12)


def test_a_message_leaves_one_rank_and_reaches_another():
    assert [collective_bytes("send", S, 2, 0), received_bytes("send", S, 2, 0)] == [S, 0]
    assert [collective_bytes("recv", S, 2, 1), received_bytes("recv", S, 2, 1)] == [0, S]


@pytest.mark.parametrize(
    "kind, sent, received",
    [
        ("all_reduce", [1.5, 1.5, 1.5, 1.5], [1.5, 1.5, 1.5, 1.5]),
        ("all_gather", [0.75, 0.75, 0.75, 0.75], [0.75, 0.75, 0.75, 0.75]),
        ("reduce_scatter", [0.75, 0.75, 0.75, 0.75], [0.75, 0.75, 0.75, 0.75]),
        ("all_to_all", [0.75, 0.75, 0.75, 0.75], [0.75, 0.75, 0.75, 0.75]),
        ("broadcast", [0, 1, 1, 1], [1, 0, 1, 1]),
        ("reduce", [1, 0, 1, 1], [1, 1, 0, 1]),
        ("scatter", [0, 0.75, 0, 0], [0.25, 0, 0.25, 0.25]),
        ("gather", [0.25, 0, 0.25, 0.25], [0, 0.75, 0, 0]),
        ("barrier", [0, 0, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_four_ranks_with_root_1_in_units_of_S(kind, sent, received):
    assert [collective_bytes(kind, S, 4, rank, root=1) / S for rank in range(4)] == sent
    assert [received_bytes(kind, S, 4, rank, root=1) / S for rank in range(4)] == received


def test_one_rank_alone_sends_nothing():
    for kind in KINDS:
        assert collective_bytes(kind, S, 1) == received_bytes(kind, S, 1, 0) == gloo_bytes(kind, S, 1, 0) == 0


def test_the_whole_group_at_once():
    assert traffic_by_rank("broadcast", S, 3, root=2) == (Traffic(S, S), Traffic(0, S), Traffic(S, 0))
    assert traffic_by_rank("broadcast", S, 3, root=2, rules="gloo") == (Traffic(0, S), Traffic(0, S), Traffic(2 * S, 0))
    for kind in ("send", "recv"):
        assert traffic_by_rank(kind, S, 3, root=2) == (Traffic(0, S), Traffic(0, 0), Traffic(S, 0))
    with pytest.raises(ValueError, match="rules is 'tree'"):
        traffic_by_rank("broadcast", S, 3, rules="tree")
    with pytest.raises(ValueError, match="world_size is 0"):
        traffic_by_rank("broadcast", S, 0)


def test_reduce_scatter_and_all_gather_make_an_all_reduce():
    for n in (2, 3, 4, 7):
        parts = collective_bytes("reduce_scatter", S, n) + collective_bytes("all_gather", S, n)
        assert parts == pytest.approx(collective_bytes("all_reduce", S, n), rel=1e-15)


@pytest.mark.parametrize(
    "row", rows("gloo_measured_shares.csv"), ids=lambda r: f"{r['kind']}-{r['world_size']}-root{r['root']}"
)
def test_gloo_bytes_agree_with_the_counters(row):
    """The file holds what TCP_INFO's counters said (torch 2.13, gloo on loopback), headers of gloo included."""
    size, n, root = int(row["total_bytes"]), int(row["world_size"]), int(row["root"])
    for law, column in ((gloo_bytes, "sent"), (gloo_received_bytes, "received")):
        measured = [float(share) for share in row[f"{column}_in_S_by_rank"].split()]
        assert len(measured) == n
        for rank, share in enumerate(measured):
            assert law(row["kind"], size, n, rank, root) / size == pytest.approx(share, rel=0.003, abs=0.001)


def test_gloo_differs_from_the_ring_in_three_collectives_only():
    def differs(kind):
        return any(gloo_bytes(kind, S, 4, rank) != collective_bytes(kind, S, 4, rank) for rank in range(4))

    assert {kind for kind in KINDS if differs(kind)} == {"reduce_scatter", "broadcast", "reduce"}


WRONG = {
    "kind": ["allreduce", "All-Gather", "", None, 3, ["all_reduce"]],
    "total_bytes": [-1, math.nan, math.inf, True, "4", None, 1j],
    "world_size": [0, -2, 2.0, True, "4", None, math.nan],
    "rank": [4, -1, 1.0, True, "0"],
    "root": [4, -1, 1.0, True, "0", None],
}
RIGHT = {"kind": "broadcast", "total_bytes": S, "world_size": 4, "rank": 1, "root": 2}


@pytest.mark.parametrize("law", [collective_bytes, received_bytes, gloo_bytes, gloo_received_bytes])
@pytest.mark.parametrize("name, value", [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_argument_is_named_in_one_sentence(law, name, value):
    with pytest.raises(ValueError) as caught:
        law(**{**RIGHT, name: value})
    message = str(caught.value)
    assert message.startswith(f"{name} is {value!r}")
    assert "\n" not in message and len(message) < 220


def test_a_misspelt_kind_is_answered_with_the_nearest():
    for kind, nearest in (("allreduce", "all_reduce"), ("Reduce-Scatter", "reduce_scatter"), ("brodcast", "broadcast")):
        with pytest.raises(ValueError, match=f"did you mean '{nearest}'"):
            collective_bytes(kind, S, 4)
    with pytest.raises(ValueError, match="choose one of all_reduce, "):
        collective_bytes("ring", S, 4)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True, "1", None])
def test_bandwidth_wants_a_duration(seconds):
    for law in (lambda: bus_bandwidth("all_reduce", S, 4, seconds), lambda: algorithm_bandwidth(S, seconds)):
        with pytest.raises(ValueError, match=r"seconds is .*above 0"):
            law()


def test_numbers_of_numpy_are_numbers():
    numpy = pytest.importorskip("numpy")
    for n, size in product(numpy.arange(2, 5), (numpy.float32(1000), numpy.int64(1000))):
        assert collective_bytes("all_reduce", size, n) == pytest.approx(collective_bytes("all_reduce", 1000, int(n)))


def test_importing_the_laws_imports_neither_torch_nor_widgets():
    code = (
        "import sys, utils.theory.traffic, utils.theory.units;"
        "heavy = {'torch', 'numpy', 'matplotlib', 'ipywidgets', 'IPython'} & set(sys.modules);"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
