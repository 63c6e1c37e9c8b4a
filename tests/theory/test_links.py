"""Links' rates, the alpha-beta model and its fit, and measured sweeps between their sizes."""

import csv
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.links import (
    ALGORITHMS,
    LINKS,
    AlphaBeta,
    bytes_per_second,
    collective_seconds,
    crossover_bytes,
    fit_alpha_beta,
    fit_link,
    link_spec,
)
from utils.theory.sweeps import in_switch_bus_bandwidth, in_switch_bytes, left_out_errors, sweep, sweeps
from utils.theory.traffic import bus_bandwidth, collective_bytes
from utils.theory.units import GB, GiB, KiB, MiB

DATA = Path(__file__).parents[1] / "data"
LINK = AlphaBeta(5e-6, 1 / (50 * GB))


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows("link_specs.csv"), ids=lambda row: row["link"])
def test_rates_one_way_and_both_ways(row):
    """The table cuts PCIe's fraction: 31.5 GB/s stand as 31."""
    link = link_spec(row["link"])
    assert math.floor(link.one_way / GB) == float(row["one_way_GBps"])
    if row["both_ways_GBps"]:
        assert link.both_ways == float(row["both_ways_GBps"]) * GB == 2 * link.one_way


def test_bits_are_an_eighth_of_a_byte():
    assert bytes_per_second(400) == 50 * GB == LINKS["InfiniBand NDR"].one_way
    assert link_spec("ethernet 100g").gigabits == 100
    assert str(LINKS["NVLink 4"]) == "NVLink 4: 450 GB/s one way (3600 Gbit/s), 900 GB/s both ways, per GPU"
    assert all(link.source and link.name == name for name, link in LINKS.items())
    with pytest.raises(ValueError, match="did you mean"):
        link_spec("NVLink4")


def test_a_step_and_its_bytes():
    assert collective_seconds("all_reduce", 8 * GB, 8, LINK) == pytest.approx(14 * 5e-6 + 2 * 7 / 8 * 8 / 50)
    assert collective_seconds("all_gather", 8 * GB, 8, LINK) == pytest.approx(7 * 5e-6 + 7 / 8 * 8 / 50)
    assert collective_seconds("all_reduce", 8 * GB, 8, LINK, "tree") == pytest.approx(6 * 5e-6 + 2 * 8 / 50)
    assert collective_seconds("all_reduce", 8 * GB, 8, LINK, "binomial") == pytest.approx(6 * (5e-6 + 8 / 50))
    assert collective_seconds("broadcast", 0, 5, LINK, "tree") == pytest.approx(3 * 5e-6)
    assert collective_seconds("all_reduce", GB, 1, LINK) == 0


@pytest.mark.parametrize("algorithm", ["ring", "halving"])
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter"])
def test_bandwidth_optimal_algorithms_reach_the_links_rate(algorithm, kind):
    for n in (2, 8, 64):
        seconds = collective_seconds(kind, 100 * GB, n, AlphaBeta(0, LINK.beta), algorithm)
        assert bus_bandwidth(kind, 100 * GB, n, seconds) == pytest.approx(50 * GB)


@given(st.integers(2, 300))
def test_ring_and_tree_cross_where_the_law_says(n):
    at = crossover_bytes(n, LINK)
    for size, ring_wins in ((at * 1.01 + 1, True), (at * 0.99 - 1, False)):
        if size > 0:
            ring, tree = (collective_seconds("all_reduce", size, n, LINK, a) for a in ("ring", "tree"))
            assert (ring < tree) is ring_wins


def test_crossover_at_the_edges():
    assert [crossover_bytes(n, LINK) for n in (1, 2, 3)] == [0, 0, 0]
    assert crossover_bytes(8, AlphaBeta(0, 0)) == 0 and crossover_bytes(8, AlphaBeta(1e-6, 0)) == math.inf


amounts = st.floats(1e-7, 1e-2), st.floats(1e-13, 1e-6)


@given(*amounts, st.sampled_from(sorted(ALGORITHMS)), st.sampled_from([2, 4, 16]))
def test_a_fit_finds_the_link_again(alpha, beta, algorithm, n):
    link = AlphaBeta(alpha, beta)
    middle = alpha / beta  # where both terms count equally
    points = [(s, collective_seconds("all_reduce", s, n, link, algorithm)) for s in (0.1 * middle, middle, 9 * middle)]
    found = fit_link("all_reduce", n, points, algorithm)
    assert (found.alpha, found.beta) == pytest.approx((alpha, beta), rel=1e-6)


def test_a_fit_weighs_relative_errors_and_gives_nothing_negative():
    points = [(1000, 0.0011), (1e6, 0.002), (1e9, 1.0)]
    fit = fit_alpha_beta(points)
    assert sum((fit.seconds(s) / t - 1) ** 2 for s, t in points) < 0.1
    for da, db in ((1.05, 1), (0.95, 1), (1, 1.05), (1, 0.95)):
        near = AlphaBeta(fit.alpha * da, fit.beta * db)
        assert sum((near.seconds(s) / t - 1) ** 2 for s, t in points) > sum(
            (fit.seconds(s) / t - 1) ** 2 for s, t in points
        )
    assert fit_alpha_beta([(1e6, 1e-3), (1e9, 2.0)]).alpha == 0
    falling = fit_alpha_beta([(1e6, 2e-3), (1e9, 1e-3)])
    assert falling.beta == 0 and 1e-3 < falling.alpha < 2e-3
    assert fit_alpha_beta([(np.int32(10), np.float32(1)), (np.int64(20), 2)]).beta == pytest.approx(0.1)


FULL = ["8 A100, NVLink 3", "8 H100, NVLink 4 with NVLS", "8 H200, NVLink 4 with NVLS", "8 B200, NVLink 5"]
FULL += ["2 x 8 A100, EFA v1", "2 x 8 H100, EFA v2", "4 x 8 B200, EFA v4"]
SHORT = "2 x 8 H100, EFA v2, Kubernetes"


def test_the_sweeps_hold_what_was_printed():
    """Times as printed, and the bus bandwidth printed beside them: within the rounding of either."""
    assert sorted(sweeps()) == sorted([*FULL, SHORT])
    with (Path(__file__).parents[2] / "utils" / "theory" / "data" / "busbw_sweeps.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 87 and all(row["source"] for row in table)
    for row in table:
        measured = sweep(row["sweep"])
        seconds = dict(measured.measured)[int(row["size_bytes"])]
        printed = bus_bandwidth(row["kind"], int(row["size_bytes"]), measured.world_size, seconds) / GB
        assert printed == pytest.approx(float(row["busbw_GBps"]), rel=0.003, abs=0.0051)


@pytest.mark.parametrize("name", FULL)
def test_a_size_left_out_is_predicted_from_its_neighbours(name):
    errors = [abs(error) for error in left_out_errors(sweep(name)).values()]
    assert len(errors) >= 9
    assert sum(errors) / len(errors) < 0.11 and max(errors) < 0.31


def test_leaving_out_over_all_sweeps():
    errors = [abs(error) for name in sweeps() for error in left_out_errors(sweep(name)).values()]
    assert len(errors) == 71 and sum(errors) / len(errors) < 0.071 and max(errors) < 0.31
    short = [abs(error) for error in left_out_errors(sweep(SHORT)).values()]
    assert len(short) == 2 and sum(short) / 2 < 0.19


@pytest.mark.parametrize("name", FULL)
def test_two_numbers_miss_large_messages_by_up_to_30_percent(name):
    """alpha and beta fitted to every other size, asked for the sizes above 16 MiB that the fit did not see."""
    points = sweep(name).measured
    fit = fit_alpha_beta(points[::2])
    unseen = [(size, seconds) for size, seconds in points[1::2] if size > 16 * MiB]
    assert len(unseen) >= 2
    assert max(abs(fit.seconds(size) / seconds - 1) for size, seconds in unseen) < 0.30


@given(st.sampled_from([*FULL, SHORT]), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_message_takes_no_less_time(name, here, there):
    measured = sweep(name)
    low, high = math.log(measured.points[0][0] / 4), math.log(measured.points[-1][0] * 4)
    small, large = sorted(math.exp(low + share * (high - low)) for share in (here, there))
    assert measured.seconds(small, extrapolate=True) <= measured.seconds(large, extrapolate=True)


@pytest.mark.parametrize("name", [*FULL, SHORT])
def test_measured_sizes_are_met_and_others_refused_or_marked(name):
    measured = sweep(name)
    for (size, seconds), (_, raw) in zip(measured.points, measured.measured, strict=True):
        assert measured.seconds(size) == pytest.approx(seconds, rel=1e-12) and seconds <= raw
    (smallest, least), (largest, most) = measured.points[0], measured.points[-1]
    for size in (smallest - 1, largest + 1):
        assert not measured.covers(size)
        with pytest.raises(ValueError, match=r"was measured from .* to .*: give a size in that range"):
            measured.seconds(size)
        with pytest.raises(ValueError, match="was measured from"):
            measured.bus_bandwidth(size)
    assert measured.covers(smallest) and measured.covers(largest)
    assert measured.seconds(0, extrapolate=True) == least
    assert measured.bus_bandwidth(4 * largest, extrapolate=True) == pytest.approx(measured.bus_bandwidth(largest))
    assert measured.seconds(2 * largest, extrapolate=True) == 2 * most
    assert pickle.loads(pickle.dumps(measured)) == measured


def test_one_bandwidth_for_all_sizes_is_wrong():
    h100 = sweep("8 H100, NVLink 4 with NVLS")
    assert h100.bus_bandwidth(MiB) / GB == pytest.approx(64.24, rel=1e-3)
    assert h100.bus_bandwidth(16 * GiB) / GB == pytest.approx(483.05, rel=1e-3)
    assert 64 < h100.bus_bandwidth(2 * MiB) / GB < 132 < h100.bus_bandwidth(8 * MiB) / GB < 237
    assert h100.seconds(16 * KiB) < 20e-6 < sweep("2 x 8 H100, EFA v2").seconds(32 * KiB)


def test_bus_bandwidth_above_the_line_rate_comes_from_the_switch():
    """What GPUs send is one rate for any number of them; divided by the ring's formula it passes the line rate."""
    h100 = sweep("8 H100, NVLink 4 with NVLS")
    assert h100.bus_bandwidth(8 * GiB) > LINKS["NVLink 4"].one_way
    sent = in_switch_bytes(8 * GiB, 8) / h100.seconds(8 * GiB)
    assert sent / GB == pytest.approx(309, rel=0.01) and sent < LINKS["NVLink 4"].one_way
    assert in_switch_bytes(8, 8) == 9 and collective_bytes("all_reduce", 8, 8) == 14
    assert in_switch_bytes(8, 1) == 0


@pytest.mark.parametrize(
    "row",
    [row for row in rows("nvls_by_gpu_count.csv") if row["algorithm"] == "NVLS"],
    ids=lambda r: r["gpu"] + r["gpus_used"],
)
def test_published_nvls_figures_follow_from_one_rate(row):
    rate = {"8xH100": 309, "8xH200": 309, "8xB200": 542}[row["gpu"]]
    assert in_switch_bus_bandwidth(rate, int(row["gpus_used"])) == pytest.approx(float(row["busbw_GBps"]), rel=0.03)


def test_nccl_keeps_the_ring_where_the_switch_gains_nothing():
    for row in rows("nvls_by_gpu_count.csv"):
        if row["algorithm"] == "Ring":
            rate = {"8xH200": 309, "8xB200": 542}[row["gpu"]]
            by_switch = in_switch_bus_bandwidth(rate, int(row["gpus_used"]))
            assert by_switch < 1.03 * float(row["ring_busbw_GBps"])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: bytes_per_second("1"), "gigabits is '1'"),
        (lambda: bytes_per_second(math.nan), "gigabits is nan"),
        (lambda: AlphaBeta(-1, 1), "alpha is -1"),
        (lambda: AlphaBeta(1, math.inf), "beta is inf"),
        (lambda: collective_seconds("all_reduce", -1, 4, LINK), "total_bytes is -1"),
        (lambda: collective_seconds("all_reduce", 1, True, LINK), "world_size is True"),
        (lambda: collective_seconds("all_reduce", 1, 10**400, LINK), "too large for a float"),
        (lambda: collective_seconds("all_reduce", 1, 6, LINK, "halving"), "give a power of two"),
        (lambda: collective_seconds("broadcast", 1, 4, LINK), "kind is 'broadcast', which has no ring here"),
        (lambda: collective_seconds("all_reduce", 1, 4, LINK, "rign"), "did you mean 'ring'"),
        (lambda: collective_seconds("all_reduce", 1, 4, 50e9), "link is 50000000000.0; give its alpha and beta"),
        (lambda: crossover_bytes(0, LINK), "world_size is 0"),
        (lambda: fit_alpha_beta([(1, 1)]), "give at least two different sizes"),
        (lambda: fit_alpha_beta([(1, 1), (1, 2)]), "give at least two different sizes"),
        (lambda: fit_alpha_beta([(1, 0), (2, 1)]), "a point's seconds is 0"),
        (lambda: fit_alpha_beta([(1, 2, 3), (2, 1)]), "points"),
        (lambda: fit_alpha_beta(3), "points is 3"),
        (lambda: fit_link("all_reduce", 1, [(1, 1), (2, 2)]), "measure at least 2 ranks"),
        (lambda: sweep("8 H100"), "sweep is .* which is not known here"),
        (lambda: sweep(FULL[0]).seconds(math.nan), "total_bytes is nan"),
        (lambda: sweep(FULL[0]).seconds(MiB, extrapolate=1), "extrapolate is 1"),
        (lambda: in_switch_bytes(1, 0), "world_size is 0"),
        (lambda: in_switch_bus_bandwidth(1, 1), "world_size is 1"),
    ],
)
def test_wrong_arguments_are_one_sentence(call, says):
    with pytest.raises(ValueError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)
